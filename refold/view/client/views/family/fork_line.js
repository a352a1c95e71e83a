/** A run of a family of forks as a line of its steps, which leaves its source's line at the state that it starts from. */

import { html } from "../../vendor/preact.js"
import { Glyph, MODES } from "../../components/glyph.js"
import { oneLine } from "../../text.js"
import { BOX } from "./layout.js"

/** px: of a step's sign. */
const SIGN = 12
const TURN = 8

/** @param {{ one: import("./layout.js").Place, from: number, step: number, isWide: boolean }} props - px: where the lines begin, and of a step; isWide: whether there is room for its result */
export function ForkLine({ one, from, step, isWide }) {
  const row = one.node?.row
  const steps = row?.steps ?? 0
  const y = one.y + BOX / 2
  const x = from + one.start * step
  const end = x + steps * step
  const modes = (row?.shape ?? "").trimEnd().toUpperCase()
  const wide = modes.length ? (end - x) / modes.length : 0
  /** Of a long run, the rare ones alone: signs do not lie on each other. */
  const signs = [...modes].map((mode, i) => ({ mode, at: x + (i + 0.5) * wide })).filter(({ mode }) => wide >= SIGN || mode !== ".")
  return html`<g>
    <path class="link" d="M${x} ${y}H${Math.max(x + 4, end)}" />
    ${one.parent && html`<path class="link fork" d="M${x} ${one.parent.y + BOX / 2}V${y - TURN}Q${x} ${y} ${x + TURN} ${y}" />`}
    ${signs.map(({ mode, at }) => html`<g transform="translate(${at - SIGN / 2} ${y - SIGN / 2})"><${Glyph} name=${MODES[mode] ?? "act"} /></g>`)}
    ${isWide && row?.result && html`<text class="told" x=${end + 12} y=${y + 4}>${oneLine(row.result, 40)}</text>`}
  </g>`
}
