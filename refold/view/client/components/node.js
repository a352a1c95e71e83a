/** JSON values as far as they are loaded: texts in blocks, containers as trees that unfold. */

import { html, useEffect, useState } from "../vendor/preact.js"
import { bytes, count } from "../format.js"
import { oneLine, visible } from "../text.js"

/**
 * @typedef {import("../api.d.ts").Source} Source
 * @typedef {import("../api.d.ts").Node} Node
 */

const CHUNK = 65_536
const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/
const MOST_PICTURE = 2_800_000
/** A text of at most so many units stands in its line. */
const SHORT = 80

/** @param {Node} node */
export const isContainer = (node) => node.kind === "object" || node.kind === "array"

/** A value in one line, such as `{a, b, …}` or `[6 items]`. @param {Node} node @param {number} [most] @returns {string} */
export function brief(node, most = 120) {
  if (node.kind === "text") return `"${oneLine(String(node.value ?? ""), most)}"`
  if (node.kind === "array") return node.size ? `[${count(node.size)} ${node.size === 1 ? "item" : "items"}]` : "[]"
  if (node.kind === "object") {
    if (!node.size) return "{}"
    const names = (node.children ?? []).slice(0, 4).map((child) => oneLine(String(child.key), 24))
    return names.length ? `{${names.join(", ")}${node.size > names.length ? ", …" : ""}}` : `{${count(node.size)}}`
  }
  return node.raw ?? String(node.value)
}

/** A scalar with its colour. @param {{ node: Node, most?: number }} props */
export const Scalar = ({ node, most = 2000 }) => html`<span class="j j-${node.kind}" dir="auto">${node.kind === "text" ? html`<q>${visible(String(node.value ?? "").slice(0, most))}</q>` : (node.raw ?? String(node.value))}</span>`

/**
 * A long text: as far as it is loaded, with more on demand.
 * @param {{ node: Node, source?: Source, run?: string, bad?: boolean }} props
 */
export function LongText({ node, source, run, bad = false }) {
  const [more, setMore] = useState("")
  const [failed, setFailed] = useState("")
  const shown = String(node.value ?? "") + more
  useEffect(() => setMore(""), [node])
  const left = node.size - shown.length
  const load = async () => {
    try {
      const found = await /** @type {Source} */ (source).value(/** @type {string} */ (run), /** @type {string} */ (node.at), shown.length, CHUNK)
      setMore(more + found.text)
    } catch (error) {
      setFailed(/** @type {Error} */ (error).message)
    }
  }
  if (node.kind === "text" && PICTURE.test(shown.slice(0, 200) + "") && shown.length <= MOST_PICTURE && PICTURE.test(shown) && left <= 0)
    return html`<img class="picture" src=${shown} alt="a picture in the trace" />`
  return html`<pre class="block ${bad ? "bad" : ""}" tabindex="0" dir="auto">${visible(shown)}</pre>
    ${left > 0 && html`<p class="big"><span>${bytes(shown.length)} of ${bytes(node.size)}</span>${source && run && node.at ? html`<button type="button" class="btn line" onClick=${load}>Show ${bytes(Math.min(CHUNK, left))} more</button>` : ""}${failed && html`<span class="err">${failed}</span>`}</p>`}`
}

/**
 * A value on its own: a block for a text, a tree for a container.
 * @param {{ node: Node, source?: Source, run?: string, bad?: boolean }} props
 */
export function NodeValue({ node, source, run, bad = false }) {
  if (node.kind === "text") return html`<${LongText} node=${node} source=${source} run=${run} bad=${bad} />`
  if (!isContainer(node) || !node.size) return html`<code class="j j-${node.kind}">${isContainer(node) ? brief(node) : (node.raw ?? String(node.value))}</code>`
  return html`<div class="tree block ${bad ? "bad" : ""}" tabindex="0"><${Members} node=${node} source=${source} run=${run} depth=${0} /></div>`
}

/** @param {{ node: Node, source?: Source, run?: string, depth: number }} props */
function Members({ node, source, run, depth }) {
  const children = node.children ?? []
  return html`${children.map((child) => html`<${Member} key=${child.key} node=${child} source=${source} run=${run} depth=${depth} />`)}
    ${node.size > children.length && html`<div class="tr"><span class="dim" style="padding-left:${depth * 16}px">${count(node.size - children.length)} more</span></div>`}`
}

/** @param {{ node: Node, source?: Source, run?: string, depth: number }} props */
function Member({ node, source, run, depth }) {
  const [open, setOpen] = useState(depth < 1 && (node.size <= 12 || !isContainer(node)))
  const text = String(node.value ?? "")
  const long = node.kind === "text" && (node.size > SHORT || text.includes("\n"))
  const folds = (isContainer(node) && node.size > 0) || long
  return html`<div class="tr" style="padding-left:${depth * 16}px">
      ${folds ? html`<button type="button" class="twist" aria-expanded=${String(open)} aria-label=${`${open ? "Fold" : "Unfold"} ${node.key}`} onClick=${() => setOpen(!open)}>${open ? "▾" : "▸"}</button>` : html`<span class="twist"></span>`}
      <span class="kx">${oneLine(String(node.key ?? ""), 80)}</span>
      <span class="v">${isContainer(node) ? html`<span class="dim">${brief(node)}</span>` : long ? html`<span class="dim">${open ? `${count(node.size)} characters` : brief(node)}</span>` : html`<${Scalar} node=${node} />`}</span>
    </div>
    ${open && isContainer(node) && html`<${Members} node=${node} source=${source} run=${run} depth=${depth + 1} />`}
    ${open && long && html`<div style="padding-left:${depth * 16 + 20}px"><${LongText} node=${node} source=${source} run=${run} /></div>`}`
}
