/**
 * The shape of a run: its 48 columns as small bars, the rare in colour. A column in which most steps have errors is an
 * error from top to bottom; in one of a few among many, the error is a mark above the bar of the others, so that a run
 * with errors everywhere still shows how many they are.
 */

import { html } from "../../vendor/preact.js"

const WIDTH = 96
const HEIGHT = 16
/** What a column shows: its colour and its height. @type {Record<string, [string, number]>} */
const MARKS = { ".": ["act", 8], B: ["kin-fill", 13], W: ["wait-fill", 13], F: ["ink", 11], E: ["error-fill", 16] }
const FEW = { mark: "e", top: 4 }
const NAMES = /** @type {Record<string, string>} */ ({ B: "branches", W: "waits", E: "errors" })

/**
 * Neighbours that are alike become one path, so that a list of a hundred runs stays small.
 *
 * @param {{ shape: string }} props
 */
export function Shape({ shape }) {
  const columns = shape.trimEnd()
  if (!columns) return html`<span class="sr">no steps</span>`
  const step = Math.min(WIDTH / columns.length, 6)
  const bar = Math.max(1, step - 0.8)
  /** @type {Record<string, string>} */
  const paths = {}
  ;[...columns].forEach((mark, i) => {
    const few = mark === FEW.mark
    const known = MARKS[few ? "." : mark]
    if (!known) return
    const [colour, height] = known
    paths[colour] = `${paths[colour] ?? ""}M${(i * step).toFixed(1)} ${HEIGHT}v-${height}h${bar.toFixed(1)}v${height}z`
    if (few) paths["error-fill"] = `${paths["error-fill"] ?? ""}M${(i * step).toFixed(1)} 0v${FEW.top}h${Math.max(2, bar).toFixed(1)}v-${FEW.top}z`
  })
  const rare = Object.keys(NAMES).filter((mark) => columns.includes(mark) || (mark === "E" && columns.includes(FEW.mark))).map((mark) => NAMES[mark])
  return html`<svg class="shape" width=${WIDTH} height=${HEIGHT} viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${rare.length ? `with ${rare.join(", ")}` : "steps without errors, waits or branches"}>
    ${Object.entries(paths).map(([colour, d]) => html`<path d=${d} fill="var(--${colour})" />`)}
  </svg>`
}
