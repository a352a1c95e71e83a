/** The list of steps. */

import { html } from "../../vendor/preact.js"
import { Glyph, signOf } from "../../components/glyph.js"
import { VirtualList } from "../../components/list.js"
import { count, seconds } from "../../format.js"
import { oneLine } from "../../text.js"

/** @typedef {import("../../api.d.ts").StepRow} StepRow */

const HEIGHT = 28

/**
 * @param {object} props
 * @param {number} props.size @param {number} props.k @param {string} props.status - of the run
 * @param {number} props.errors
 * @param {{ row: (k: number) => StepRow | null, load: (from: number, to: number) => void }} props.rows
 * @param {(k: number) => void} props.go @param {() => void} props.nextError @param {boolean} props.on
 */
export function Steps({ size, k, status, errors, rows, go, nextError, on }) {
  /** The summary is the row above step 0. @param {number} from @param {number} to */
  const draw = (from, to) => {
    rows.load(Math.max(0, from - 1), to)
    const found = []
    for (let i = from; i < to; i++) found.push(i === 0 ? html`<${Summary} key="s" current=${k < 0} status=${status} go=${go} />` : html`<${Row} key=${i} k=${i - 1} row=${rows.row(i - 1)} current=${k === i - 1} go=${go} />`)
    return found
  }
  return html`<section class="pane steps ${on ? "on" : ""}" aria-label="Steps">
    <header><h2>Steps <span class="dim">${count(size)}</span></h2><span class="grow"></span>
      ${errors > 0 && html`<button type="button" class="btn err" onClick=${nextError}><${Glyph} name="error" />${count(errors)} ${errors === 1 ? "error" : "errors"}</button>`}</header>
    <${VirtualList} size=${size + 1} height=${HEIGHT} shown=${k + 1} rows=${draw} label="Steps" />
  </section>`
}

/** @param {{ current: boolean, status: string, go: (k: number) => void }} props */
const Summary = ({ current, status, go }) => html`<div role="listitem"><button type="button" class="st" style="top:0" aria-current=${current ? "step" : null} tabindex=${current ? 0 : -1} onClick=${() => go(-1)}><span class="i"></span><${Glyph} name=${status} /><span class="w"><b>Summary</b></span></button></div>`

/** @param {{ k: number, row: StepRow | null, current: boolean, go: (k: number) => void }} props */
function Row({ k, row, current, go }) {
  const label = row ? oneLine(row.label, 120) : ""
  const space = label.indexOf(" ")
  const [head, rest] = space > 0 ? [label.slice(0, space), label.slice(space)] : [label, ""]
  return html`<div role="listitem"><button type="button" class="st ${row?.errors ? "bad" : ""}" style="top:${(k + 1) * HEIGHT}px" aria-current=${current ? "step" : null} tabindex=${current ? 0 : -1} onClick=${() => go(k)}>
    <span class="i">${count(k)}</span><${Glyph} name=${row ? signOf(row) : "act"} /><span class="w grow cut" dir="auto"><b>${head}</b>${rest}</span><span class="d">${seconds(row?.seconds)}</span>
  </button></div>`
}
