/** What the run has used at the cursor, against its limits: a chart of the sums above a bar. */

import { html } from "../../vendor/preact.js"
import { cost, count, seconds, shortCount } from "../../format.js"

/**
 * @typedef {import("../../api.d.ts").Run} RunInfo
 * @typedef {import("../../api.d.ts").Columns} Columns
 */

const HOT = 0.8

/** @param {number[]} sums @param {number} top @returns {string} - the points of a line on 100 by 28 */
function line(sums, top) {
  if (sums.length === 1) return line([0, ...sums], top) // one step: the line starts at nothing, as a point has none
  const last = sums.length - 1
  return sums.map((sum, i) => `${((i / last) * 100).toFixed(2)},${(28 - (sum / top) * 27).toFixed(2)}`).join(" ")
}

/** The sum up to step k. @param {Columns} columns @param {number[]} sums @param {number} k */
function upTo(columns, sums, k) {
  let sum = 0
  for (let i = 0; i < columns.first.length && /** @type {number} */ (columns.first[i]) <= k; i++) sum = /** @type {number} */ (sums[i])
  return sum
}

/** A limit without the zeros at its end: `2 h`, `8 M`. @param {string} text */
const round = (text) => text.replace(/ (m 00 s|h 00 m)$/, (unit) => unit.slice(0, 2)).replace(/\.0+(?=\D*$)/, "")

/** @param {{ run: RunInfo, columns: Columns | null, k: number, last: number }} props - columns: of the whole run; last: the last step, to which the work at the run's end belongs */
export function Budgets({ run, columns, k, last }) {
  if (!columns?.n) return html`<div class="budgets later"></div>` // its room is kept, so that nothing jumps
  const at = k < 0 ? run.steps : k
  const steps = columns.first
  /** Name, sums over the steps, limit, and the whole run's: its end takes time, too. @type {[string, number[], number | null, (value: number) => string, number | null][]} */
  const all = [
    ["Steps", steps.map((first) => Math.min(first + 1, run.steps) + run.before), run.budget.max_steps, count, run.steps + run.before],
    ["Time", columns.sum_seconds, run.budget.max_runtime_seconds, seconds, run.seconds],
    ["Tokens", columns.sum_tokens, run.budget.max_tokens, shortCount, run.usage.tokens_in + run.usage.tokens_out],
    ["Cost", columns.sum_cost, run.budget.max_cost_usd, (value) => cost(value) || "$0", run.usage.cost],
  ]
  const budgets = all.filter(([, sums, limit]) => limit !== null || /** @type {number} */ (sums[sums.length - 1] ?? 0) > 0)
  return html`<dl class="budgets ${k < 0 ? "" : "later"}" style="--n:${budgets.length}">
    ${budgets.map(([name, sums, limit, say, whole]) => {
      const used = (k < 0 || (k >= last && run.status !== "running")) && whole !== null ? whole : name === "Steps" ? Math.min(at + 1, run.steps) + run.before : upTo(columns, sums, at)
      const end = /** @type {number} */ (sums[sums.length - 1] ?? 0)
      const top = Math.max(end, limit !== null && limit < end * 3 ? limit : 0) || 1
      const share = limit ? used / limit : 0
      const x = run.steps > 1 ? (Math.min(at, run.steps - 1) / (run.steps - 1)) * 100 : 100
      return html`<div class="budget">
        <dt><span>${name}</span><span><b>${name !== "Cost" || run.usage.cost !== null ? say(used) : used ? `≥ ${say(used)}` : "not known"}</b>${limit !== null && html`<span class="wide"> of ${round(say(limit))}</span>`}${name === "Steps" && run.before > 0 && html`<span class="dim wide">, ${count(run.before)} before the fork</span>`}</span></dt>
        <dd><svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
          <polygon class="area" points=${`0,28 ${line(sums, top)} 100,28`} /><polyline class="sum" points=${line(sums, top)} />
          ${limit !== null && limit <= top && html`<line class="limit" x1="0" x2="100" y1=${28 - (limit / top) * 27} y2=${28 - (limit / top) * 27} />`}
          ${k >= 0 && html`<line class="cursor" x1=${x} x2=${x} y1="0" y2="28" />`}
        </svg>
        ${limit !== null && html`<div class="meter" role="meter" aria-label=${`${name} used`} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.min(100, Math.round(share * 100))}><i class=${share > 1 ? "over" : share >= HOT ? "hot" : ""} style="width:${Math.min(100, share * 100)}%"></i></div>`}</dd>
      </div>`
    })}
  </dl>`
}
