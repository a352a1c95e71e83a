/** Two evaluations: whether their scores differ by more than chance, which tasks changed, and where their runs part. */

import { html, useEffect, useState } from "../../vendor/preact.js"
import { count, plural } from "../../format.js"
import { oneLine, visible } from "../../text.js"
import { Loading, Problem, Say } from "../states/say.js"
import { addressOfEvaluation, Facts, scoreText } from "./figures.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").EvaluationDiff} EvaluationDiff
 * @typedef {import("../../api.d.ts").EvaluationFigures} EvaluationFigures
 */

/** @param {{ source: Source, a: string, b: string }} props */
export function EvaluationComparison({ source, a, b }) {
  const [comparison, setComparison] = useState(/** @type {EvaluationDiff | null} */ (null))
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null))
  useEffect(() => {
    let gone = false
    source.evaluationDiff(a, b).then((answer) => void (gone || setComparison(answer)), (error) => void (gone || setProblem(error)))
    return () => void (gone = true)
  }, [source, a, b])
  if (problem) return html`<${Problem} error=${problem} />`
  if (!comparison) return html`<${Loading} text="Comparing the evaluations" />`
  return html`<div class="page set-page ev-page">
    <h1>${comparison.worse ? "B is worse, by more than chance" : comparison.tests.some((each) => each.significant) ? "B is better, by more than chance" : comparison.changes_total ? "No difference beyond chance" : "No difference"}</h1>
    <div class="ev-sides"><${Side} figures=${comparison.a} letter="A" /><${Side} figures=${comparison.b} letter="B" /></div>
    <p><a class="btn line" href=${addressOfEvaluation(b, a)}>Swap A and B</a></p>
    <section><h2>Scores</h2><div class="set-scroll" tabindex="0" role="region" aria-label="Scores"><table class="set-tasks">
      <thead><tr><th scope="col">Score</th><th scope="col" class="num">A</th><th scope="col" class="num">B</th><th scope="col" class="num">Better</th><th scope="col" class="num">Worse</th><th scope="col" class="num">Tasks</th><th scope="col">Paired test</th><th scope="col" class="num">p (Holm)</th><th scope="col">Chance?</th></tr></thead>
      <tbody>${comparison.tests.map((each) => html`<tr><th scope="row" dir="auto">${visible(each.score)}</th><td class="num" data-label="A">${scoreText(each.before)}</td><td class="num" data-label="B">${scoreText(each.after)}</td><td class="num" data-label="better">${count(each.better)}</td><td class="num" data-label="worse">${count(each.worse)}</td><td class="num" data-label="tasks">${count(each.tasks)}</td><td class="nowrap">${each.test}</td><td class="num" data-label="p">${each.corrected < 0.001 ? "<0.001" : scoreText(each.corrected)}</td><td class="nowrap">${each.significant ? html`<b>more than chance</b>` : each.better || each.worse ? "may be chance" : "the same"}</td></tr>`)}</tbody>
    </table></div></section>
    ${comparison.settings.length > 0 && html`<section><h2>Different settings</h2><div class="set-scroll" tabindex="0" role="region" aria-label="Different settings"><table class="set-tasks">
      <thead><tr><th scope="col">Setting</th><th scope="col">A</th><th scope="col">B</th><th scope="col" class="num">Pairs of runs</th></tr></thead>
      <tbody>${comparison.settings.map((each) => html`<tr><th scope="row" dir="auto">${visible(each.path)}</th><td data-label="A" dir="auto">${oneLine(each.before, 300)}</td><td data-label="B" dir="auto">${oneLine(each.after, 300)}</td><td class="num" data-label="pairs">${each.pairs === comparison.pairs ? `all ${count(comparison.pairs)}` : `${count(each.pairs)} of ${count(comparison.pairs)}`}</td></tr>`)}</tbody>
    </table></div></section>`}
    <section><h2>Tasks that changed</h2>
      ${comparison.changes.length ? html`<div class="set-scroll" tabindex="0" role="region" aria-label="Tasks that changed"><table class="set-tasks">
        <thead><tr><th scope="col">Task</th><th scope="col">Scores, A → B</th><th scope="col">Where the runs part</th></tr></thead>
        <tbody>${comparison.changes.map((each) => html`<tr>
          <td class="ev-task" dir="auto">${visible(each.id)}</td>
          <td class="ev-changed" data-label=""><dl>${each.scores.map(({ score, before, after }) => html`<div><dt class="dim" dir="auto">${visible(score)}</dt><dd>${scoreText(before)} → <span class=${after < before ? "err" : "ev-passed"}>${after < before ? "▼" : "▲"} ${scoreText(after)}</span></dd></div>`)}</dl></td>
          <td class="set-task"><div><${Parting} change=${each} /></div>${each.difference && html`<div class="dim told" dir="auto">${oneLine(each.difference, 300)}</div>`}</td>
        </tr>`)}</tbody></table></div>
        ${comparison.changes_total > comparison.changes.length && html`<p class="dim">${count(comparison.changes_total - comparison.changes.length)} more tasks; <code>refold eval diff --json</code> has all.</p>`}` : html`<${Say} inner title="No task changed" />`}
    </section>
    ${comparison.only.map((each, side) => each.total > 0 && html`<p class="dim" dir="auto">Only ${side ? "B" : "A"} has ${plural(each.total, "task")}: ${each.tasks.map((task) => oneLine(task, 80)).join(", ")}${each.total > each.tasks.length ? " …" : ""}</p>`)}
  </div>`
}

/** The way to the two runs. @param {{ change: EvaluationDiff["changes"][number] }} props */
function Parting({ change: { runs: [a, b], step, phase } }) {
  if (a === null || b === null) return html`<span class="dim">the runs are not here</span>`
  if (a === b) return html`<a href=${`#/run/${encodeURIComponent(a)}`}>the same run</a>`
  return html`<a href=${`#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`}>${step === null ? "Compare the runs" : `step ${count(step)}, ${visible(phase ?? "")}`}</a>`
}

/** @param {{ figures: EvaluationFigures, letter: string }} props */
const Side = ({ figures, letter }) =>
  html`<div><h2 class="row"><span class="letter">${letter}</span><a class="cut" dir="auto" href=${addressOfEvaluation(figures.id)}>${visible(figures.id === "." ? figures.name : figures.id)}</a></h2>
    <p class="row ev-facts dim"><span class="nowrap">${count(figures.passed)} passed, ${count(figures.failed)} failed${figures.none > 0 && `, ${count(figures.none)} without a verdict`}</span><${Facts} figures=${figures} /></p></div>`
