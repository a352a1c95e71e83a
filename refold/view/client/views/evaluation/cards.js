/** The evaluations of the folder, above the list of its runs. */

import { html, useEffect, useState } from "../../vendor/preact.js"
import { count } from "../../format.js"
import { oneLine } from "../../text.js"
import { Cards } from "../sets/cards.js"
import { addressOfEvaluation, Facts, intervalText, scoreText, Verdicts } from "./figures.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").EvaluationCard} EvaluationCard
 */

/** @param {{ source: Source }} props */
export function Evaluations({ source }) {
  const [found, setFound] = useState(/** @type {{ evaluations: EvaluationCard[], total: number } | null} */ (null))
  const [problem, setProblem] = useState("")
  useEffect(() => {
    let gone = false
    source.evaluations().then((answer) => void (gone || setFound(answer)), (/** @type {Error} */ error) => void (gone || setProblem(error.message)))
    return () => void (gone = true)
  }, [source])
  if (problem) return html`<p class="notice wait" role="alert">${problem}</p>`
  if (!found?.evaluations.length) return null
  return html`<section aria-label="Evaluations">
    <${Cards} noun="evaluation" cards=${found.evaluations.map((each) => html`<${Card} key=${each.id} card=${each} />`)} />
    ${found.total > found.evaluations.length && html`<p class="dim">${count(found.total - found.evaluations.length)} more evaluations are not listed.</p>`}
  </section>`
}

/** @param {{ card: EvaluationCard }} props */
function Card({ card }) {
  const title = oneLine(card.id === "." ? (card.problem === null ? card.name : "Evaluation") : card.id)
  const [passed] = card.problem === null ? card.scores : []
  return html`<a class="set-card" href=${addressOfEvaluation(card.id)}>
    <span class="row"><b class="cut" dir="auto">${title}</b>${passed && html`<span class="dim nowrap">${scoreText(passed.mean)} passed${passed.low !== null && html` <span class="wide">(${intervalText(passed)})</span>`}</span>`}</span>
    ${card.problem === null ? html`<${Verdicts} figures=${card} /><span class="row dim wide"><${Facts} figures=${card} /></span>` : html`<span class="dim" dir="auto">${oneLine(card.problem)}</span>`}
  </a>`
}
