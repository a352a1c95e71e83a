/** How a run stands, with its sign. */

import { html } from "../vendor/preact.js"
import { Glyph } from "./glyph.js"

const REASONS = /** @type {Record<string, string>} */ ({
  budget_tokens: "tokens used up",
  budget_time: "time used up",
  budget_steps: "steps used up",
  budget_cost: "money used up",
  max_steps: "steps used up",
  stagnation: "no progress",
  agent_condition: "a stop condition",
  critic_stop: "a critic",
  context_overflow: "context is full",
})

/** @param {{ row: { status: string, reason: string | null } }} props */
export const Status = ({ row }) =>
  html`<span class="status s-${row.status}"><${Glyph} name=${row.status} />${row.status}${row.reason && REASONS[row.reason] ? html` <span class="dim">${REASONS[row.reason]}</span>` : ""}</span>`
