/** How a run stands, with its sign. */

import { html } from "../vendor/preact.js"
import { MEANINGS } from "../endings.js"
import { oneLine } from "../text.js"
import { Glyph } from "./glyph.js"

/** Reasons that say no more than their status. */
const PLAIN = new Set(["success", "final", "waiting", "cancelled", "unrecoverable_error"])
const STATUSES = /** @type {Record<string, string>} */ ({
  interrupted: "The process of this run ended before the run did: it was killed, or the machine stopped. What was recorded is whole, and `refold resume` continues the run from there.",
  running: "A process is writing this run's trace.",
  corrupt: "The trace is not as it was written.",
})

/** What a stop reason means: its word, and the engine's sentence. @param {string} reason */
export const meaningOf = (reason) => `${oneLine(reason, 60)}${Object.hasOwn(MEANINGS, reason) ? `: ${MEANINGS[reason]}` : ""}`

/** What a status means, for a person. @param {{ status: string, reason: string | null }} row */
export const saysOf = ({ status, reason }) => (reason ? meaningOf(reason) : (STATUSES[status] ?? ""))

/** @param {{ row: { status: string, reason: string | null } }} props */
export const Status = ({ row }) =>
  html`<span class="status s-${row.status}" title=${saysOf(row) || null}><${Glyph} name=${row.status} />${oneLine(row.status, 40)}${row.reason && !PLAIN.has(row.reason) ? html` <span class="dim">${oneLine(row.reason, 40)}</span>` : ""}</span>`
