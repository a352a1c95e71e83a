/** The evaluations of the folder, above the list of its runs. */

import { html } from "../../vendor/preact.js"
import { count } from "../../format.js"
import { oneLine } from "../../text.js"
import { Cards } from "../sets/cards.js"
import { addressOfEvaluation, Facts, intervalText, scoreText, Verdicts } from "./figures.js"

/** @typedef {import("../../api.d.ts").EvaluationCard} EvaluationCard */

/** @param {{ evaluations: EvaluationCard[], total: number }} props */
export function Evaluations({ evaluations, total }) {
  if (!evaluations.length) return null
  return html`<section aria-label="Evaluations">
    <${Cards} noun="evaluation" cards=${evaluations.map((each) => html`<${Card} key=${each.id} card=${each} />`)} />
    ${total > evaluations.length && html`<p class="dim">${count(total - evaluations.length)} more evaluations are not listed.</p>`}
  </section>`
}

/** @param {{ card: EvaluationCard }} props */
function Card({ card }) {
  const figures = card.problem === null && !card.unread ? card : null
  const title = oneLine(card.id === "." ? (figures?.name ?? "Evaluation") : card.id)
  const [passed] = figures?.scores ?? []
  return html`<a class="set-card ev-card" href=${addressOfEvaluation(card.id)} aria-busy=${figures || card.problem !== null ? null : "true"}>
    <span class="row"><b class="cut" dir="auto">${title}</b>${passed && html`<span class="dim nowrap">${scoreText(passed.mean)} passed${passed.low !== null && html` <span class="wide">(${intervalText(passed)})</span>`}</span>`}</span>
    ${figures ? html`<${Verdicts} figures=${figures} /><span class="row dim wide"><${Facts} figures=${figures} /></span>` : card.problem !== null ? html`<span class="dim" dir="auto">${oneLine(card.problem)}</span>` : html`<span class="set-bar"></span><span class="set-legend dim">Reading the samples</span>`}
  </a>`
}
