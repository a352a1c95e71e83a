/** What somebody said: a text that may be long, as markdown or as it stands, with more of it on demand. */

import { html, useLayoutEffect, useRef, useState } from "../../vendor/preact.js"
import { count, partOf } from "../../format.js"
import { visible } from "../../text.js"
import { fromMarkdown, LONGEST } from "./markdown.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").Node} Node
 */

const MORE = 65_536

/** @param {{ source: Source, run: string, node: Node, plain?: boolean }} props */
export function MessageText({ source, run, node, plain }) {
  const first = node.kind === "text" ? String(node.value ?? "") : JSON.stringify(node.value ?? null)
  const [more, setMore] = useState("")
  const [failed, setFailed] = useState("")
  const text = first + more
  const size = node.kind === "text" ? node.size : text.length
  const rest = size - text.length
  const load = async () => {
    try {
      const piece = await source.value(run, node.at ?? "", text.length, MORE)
      setMore(more + piece.text)
    } catch (error) {
      setFailed(/** @type {Error} */ (error).message)
    }
  }
  return html`${plain || text.length > LONGEST ? html`<pre class="block" tabindex="0" dir="auto">${visible(text)}</pre>` : html`<${Markdown} text=${text} />`}
    ${rest > 0 && html`<div class="big"><span>${partOf(text.length, size)}</span>${node.at && html`<button type="button" class="btn line" onClick=${load}>Show ${count(Math.min(rest, MORE))} more</button>`}</div>`}
    ${failed && html`<p class="problem" role="alert">${failed}</p>`}`
}

/** @param {{ text: string }} props */
function Markdown({ text }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null))
  useLayoutEffect(() => void box.current?.replaceChildren(fromMarkdown(text)), [text])
  return html`<div class="markdown" dir="auto" ref=${box}></div>`
}
