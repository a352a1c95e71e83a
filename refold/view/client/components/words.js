/** The difference of two texts, by words. */

import { diff } from "../vendor/myers.js"
import { html } from "../vendor/preact.js"
import { visible } from "../text.js"

const MOST_PAIRS = 250_000
const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu

/** @typedef {["same" | "del" | "add", string]} Piece */

/** @param {string} old @param {string} now @returns {Piece[]} - old above new where little is common, or there is too much of both */
export function wordDiff(old, now) {
  const a = old.match(WORDS) ?? []
  const b = now.match(WORDS) ?? []
  /** @type {Piece[]} */
  const whole = [["del", old], ["add", now]]
  if (a.length * b.length > MOST_PAIRS) return whole.filter((piece) => piece[1])
  /** @type {Piece[]} */
  const pieces = []
  /** @param {Piece[0]} kind @param {string[]} words */
  const push = (kind, words) => void (words.length && pieces.push([kind, words.join("")]))
  let at = 0
  for (const [startOld, endOld, startNew, endNew] of diff(a, b)) {
    push("same", a.slice(at, startOld))
    push("del", a.slice(startOld, endOld))
    push("add", b.slice(startNew, endNew))
    at = endOld
  }
  push("same", a.slice(at))
  const kept = pieces.reduce((sum, [kind, text]) => sum + (kind === "same" ? text.trim().length : 0), 0)
  return kept * 4 < Math.min(old.length, now.length) ? whole.filter((piece) => piece[1]) : pieces
}

/** @param {{ old: string, now: string }} props */
export const WordDiff = ({ old, now }) =>
  html`<span class="words">${wordDiff(old, now).map(([kind, text]) => (kind === "same" ? visible(text) : kind === "del" ? html`<del>${visible(text)}</del>` : html`<ins>${visible(text)}</ins>`))}</span>`
