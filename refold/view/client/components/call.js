/** An action as a call, with what came of it. */

import { html } from "../vendor/preact.js"
import { seconds } from "../format.js"
import { oneLine, visible } from "../text.js"
import { brief, isContainer, NodeValue, Scalar } from "./node.js"
import { WordDiff } from "./words.js"

/**
 * @typedef {import("../api.d.ts").Source} Source
 * @typedef {import("../api.d.ts").Call} Call
 * @typedef {import("../api.d.ts").Node} Node
 */

/** Arguments that stand for a text before and after: shown as one difference. */
const PAIRS = /** @type {const} */ ([["old_string", "new_string"], ["old_str", "new_str"], ["old", "new"], ["before", "after"], ["search", "replace"]])
const INLINE = 90

/** @param {Node} node */
const isLong = (node) => (node.kind === "text" && (node.size > INLINE || String(node.value).includes("\n"))) || (isContainer(node) && node.size > 0)

/** @param {Node[]} args @returns {[Node, Node] | null} */
function pairIn(args) {
  const known = new Map(args.map((each) => [each.key, each]))
  for (const [old, now] of PAIRS) {
    const [a, b] = [known.get(old), known.get(now)]
    if (a?.kind === "text" && b?.kind === "text" && isWhole(a) && isWhole(b)) return [a, b]
  }
  return null
}
/** @param {Node} node */
const isWhole = (node) => String(node.value ?? "").length === node.size

/** @param {{ call: Call, source?: Source, run?: string }} props */
export function CallView({ call, source, run }) {
  const args = call.args.kind === "object" ? (call.args.children ?? []) : []
  const pair = pairIn(args)
  const long = args.filter((each) => isLong(each) && !pair?.includes(each))
  return html`<div class="action" id=${call.id ? `call-${call.id}` : null}>
    <div class="row"><div class="call grow"><b>${oneLine(call.name, 120)}</b>(${args.map((each, i) => html`${i ? ", " : ""}<span class="k">${oneLine(String(each.key), 60)}=</span>${long.includes(each) || pair?.includes(each) ? html`<span class="dim">${brief(each, 40)}</span>` : html`<${Scalar} node=${each} />`}`)}${args.length < call.args.size ? html`<span class="dim">, …</span>` : ""})</div>
      <span class="dim num nowrap">${call.state === "open" ? "not ended" : call.state === "cancelled" ? "cancelled" : seconds(call.seconds)}</span></div>
    ${pair && html`<pre class="block" tabindex="0"><${WordDiff} old=${String(pair[0].value ?? "")} now=${String(pair[1].value ?? "")} /></pre>`}
    ${long.map((each) => html`<div class="arg"><span class="k">${oneLine(String(each.key), 60)}</span><${NodeValue} node=${each} source=${source} run=${run} /></div>`)}
    ${call.error && html`<div class="res"><span aria-hidden="true">→</span><div><pre class="block bad" tabindex="0">${call.error.type && html`<b>${oneLine(call.error.type, 80)}</b>: `}${visible(call.error.message)}</pre></div></div>`}
    ${call.output && !(call.error && call.output.kind === "null") && html`<div class="res"><span aria-hidden="true">→</span><div><${NodeValue} node=${call.output} source=${source} run=${run} /></div></div>`}
  </div>`
}
