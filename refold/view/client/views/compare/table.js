/** A table of what differs: path, A, B; texts with the words that differ marked. */

import { html } from "../../vendor/preact.js"
import { wordDiff } from "../../components/words.js"
import { plural } from "../../format.js"
import { shortened, visible } from "../../text.js"

/**
 * @typedef {import("../../api.d.ts").Node} Node
 * @typedef {import("./difference.js").Row} Row
 */

const SHOWN = 40
const LONGEST = 600

/** @param {{ rows: Row[], caption: string, total?: number }} props */
export function DifferenceTable({ rows, caption, total = rows.length }) {
  return html`<table class="dt">
      <caption class="sr">${caption}</caption>
      <colgroup><col /><col /><col /></colgroup>
      <thead><tr><th scope="col">Path</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
      <tbody>${rows.slice(0, SHOWN).map((row) => html`<${DifferenceRow} key=${row.path} row=${row} />`)}</tbody>
    </table>
    ${total > SHOWN && html`<p class="dim">${total - SHOWN} more ${total - SHOWN === 1 ? "value differs" : "values differ"}.</p>`}`
}

/** @param {{ row: Row }} props */
function DifferenceRow({ row }) {
  const { a, b } = row
  /** @type {any} */
  let left = a ? written(a, b) : "nothing"
  /** @type {any} */
  let right = b ? written(b, a) : "nothing"
  if (a?.kind === "text" && b?.kind === "text" && a.size && b.size) {
    const words = wordDiff(left, right)
    left = words.filter(([kind]) => kind !== "add").map(([kind, text]) => (kind === "del" ? html`<mark class="a">${text}</mark>` : text))
    right = words.filter(([kind]) => kind !== "del").map(([kind, text]) => (kind === "add" ? html`<mark class="b">${text}</mark>` : text))
  } else if (a && b) {
    left = html`<mark class="a">${left}</mark>`
    right = html`<mark class="b">${right}</mark>`
  }
  return html`<tr><th scope="row"><bdi>${visible(row.path) || "/"}</bdi></th><td class=${a ? "a" : "none"} dir="auto">${left}</td><td class=${b ? "b" : "none"} dir="auto">${right}</td></tr>`
}

/** A value on some lines; a text in quotes if it is empty, or if the other value is none. @param {Node} node @param {Node | null} other */
function written(node, other) {
  const text = node.kind === "text" && node.size && (other?.kind ?? "text") === "text" ? String(node.value ?? "") : inline(node)
  const cut = shortened(text, LONGEST)
  const size = node.kind === "text" && node.size > cut.length ? ` (${plural(node.size, "character")})` : ""
  return visible(cut) + size
}

/** @param {Node} node @returns {string} */
function inline(node) {
  if (node.kind === "text") return JSON.stringify(node.value)
  const children = node.children ?? []
  const rest = node.size > children.length ? [`… ${node.size - children.length} more`] : []
  if (node.kind === "array") return `[${[...children.map(inline), ...rest].join(", ")}]`
  if (node.kind === "object") return `{${[...children.map((child) => `${child.key}: ${inline(child)}`), ...rest].join(", ")}}`
  return node.raw ?? JSON.stringify(node.value ?? null)
}
