/** How a set stands, as one bar: a part for each status, with its number in words beside. */

import { html } from "../../vendor/preact.js"
import { count } from "../../format.js"
import { oneLine } from "../../text.js"

/** @typedef {import("../../api.d.ts").RunSet} RunSet */

/** The order of the parts: what has ended, what is going on, what has not begun. */
export const STATUSES = ["completed", "stopped", "failed", "errored", "waiting", "running", "queued"]

/** The statuses of a set's tasks with their numbers, in one order. @param {RunSet} set @returns {[string, number][]} */
export function parts(set) {
  const known = STATUSES.filter((name) => set.counts[name])
  const others = Object.keys(set.counts).filter((name) => !STATUSES.includes(name) && set.counts[name])
  return [...known, ...others].map((name) => [name, set.counts[name] ?? 0])
}

/** How many tasks have ended; one that waits for an answer has not. @param {RunSet} set */
export const ended = (set) => set.tasks - (set.counts.queued ?? 0) - (set.counts.running ?? 0) - (set.counts.waiting ?? 0)

/** @param {{ set: RunSet }} props */
export function Bar({ set }) {
  const shares = parts(set)
  return html`<div class="set-bar" role="img" aria-label=${shares.map(([name, number]) => `${count(number)} ${oneLine(name, 40)}`).join(", ")}>
    ${shares.map(([name, number]) => html`<span class="b-${STATUSES.includes(name) ? name : "queued"}" style="flex-grow:${number}"></span>`)}
  </div>`
}

/** The parts of the bar in words, each with its colour. @param {{ set: RunSet }} props */
export const Legend = ({ set }) =>
  html`<span class="set-legend">${parts(set).map(([name, number]) => html`<span class="nowrap"><i class="b-${STATUSES.includes(name) ? name : "queued"}" aria-hidden="true"></i>${count(number)} ${oneLine(name, 40)}</span>`)}</span>`
