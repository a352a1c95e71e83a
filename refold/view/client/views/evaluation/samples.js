/** The samples of an evaluation: verdict, scores, answer, and the way to the run. */

import { html } from "../../vendor/preact.js"
import { costBound, count, seconds, shortCount } from "../../format.js"
import { oneLine, visible } from "../../text.js"
import { Say } from "../states/say.js"
import { scoreText } from "./figures.js"

/**
 * @typedef {import("../../api.d.ts").EvaluationPage} EvaluationPage
 * @typedef {import("../../api.d.ts").EvaluationSample} EvaluationSample
 */

const SHOWS = /** @type {["passed" | "failed" | "none", string][]} */ ([["passed", "passed"], ["failed", "failed"], ["none", "no verdict"]])

/** @param {{ page: EvaluationPage, show: string | null, pick: (show: string | null) => void, more: () => void }} props */
export function Samples({ page, show, pick, more }) {
  const repeated = page.runs > page.tasks
  return html`<section><h2 class="row">Samples
      <span class="seg ev-seg" role="group" aria-label="Verdict">
        <button type="button" aria-pressed=${String(!show)} onClick=${() => pick(null)}>all <span class="dim">${count(page.runs)}</span></button>
        ${SHOWS.map(([name, words]) => page[name] > 0 && html`<button type="button" aria-pressed=${String(show === name)} onClick=${() => pick(show === name ? null : name)}>${words} <span class="dim">${count(page[name])}</span></button>`)}
      </span></h2>
    ${page.samples.length ? html`<div class="set-scroll" tabindex="0" role="region" aria-label="Samples"><table class="set-tasks ev-samples">
      <thead><tr><th scope="col">Task</th>${repeated && html`<th scope="col" class="num">Repeat</th>`}<th scope="col">Verdict</th>${page.scorers.map((name) => html`<th scope="col" class="num" dir="auto">${visible(name)}</th>`)}<th scope="col" class="num">Steps</th><th scope="col" class="num">Time</th><th scope="col" class="num">Tokens</th><th scope="col" class="num">Cost</th></tr></thead>
      <tbody>${page.samples.map((sample) => html`<${Line} key=${`${sample.repeat} ${sample.id}`} sample=${sample} scorers=${page.scorers} repeated=${repeated} />`)}</tbody>
    </table></div>` : html`<${Say} inner title="No sample has this verdict" />`}
    ${page.next !== null && html`<p><button type="button" class="btn line" onClick=${more}>Show more samples</button> <span class="dim">${count(page.samples.length)} of ${count(page.total)}</span></p>`}
  </section>`
}

/** @param {{ sample: EvaluationSample, scorers: string[], repeated: boolean }} props */
function Line({ sample, scorers, repeated }) {
  const raised = Object.entries(sample.errors)
  const reasons = scorers.flatMap((name) => (sample.scores[name]?.reason ? [[name, sample.scores[name]?.reason ?? ""]] : []))
  const text = sample.error ?? sample.output
  return html`<tr>
    <td class="set-task">
      ${sample.run === null ? html`<span dir="auto">${visible(sample.id)}</span>` : html`<a dir="auto" href=${`#/run/${encodeURIComponent(sample.run)}`}>${visible(sample.id)}</a>`}
      ${text !== null && html`<div class=${sample.error !== null ? "err told" : "dim told"} dir="auto">${oneLine(text, 400)}</div>`}
      ${raised.map(([name, text]) => html`<div class="err told" dir="auto">${visible(name)}: ${oneLine(text, 400)}</div>`)}
      ${sample.passed !== true && reasons.map(([name, text]) => html`<div class="dim told" dir="auto">${visible(name ?? "")}: ${oneLine(text ?? "", 400)}</div>`)}
    </td>
    ${repeated && html`<td class="num" data-label="repeat">${count(sample.repeat)}</td>`}
    <td class="nowrap"><${Verdict} sample=${sample} /></td>
    ${scorers.map((name) => html`<td class="num" data-label=${visible(name)}>${name in sample.errors ? html`<span class="err">error</span>` : scoreText(sample.scores[name]?.value)}</td>`)}
    <td class="num" data-label="steps">${count(sample.steps)}</td>
    <td class="num" data-label="time">${seconds(sample.seconds)}</td>
    <td class="num" data-label="tokens">${shortCount(sample.tokens || null)}</td>
    <td class="num" data-label="cost">${costBound(sample)}</td>
  </tr>`
}

/** @param {{ sample: EvaluationSample }} props */
function Verdict({ sample }) {
  if (sample.passed === true) return html`<span class="ev-passed">✓ passed</span>`
  if (sample.passed === false) return html`<span class="err">✗ failed</span>`
  return html`<span class="dim">${Object.keys(sample.errors).length || sample.status === "completed" ? "no verdict" : visible(sample.status)}</span>`
}
