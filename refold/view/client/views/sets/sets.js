/** The sets of the folder, above the list of its runs. */

import { html, useCallback, useState } from "../../vendor/preact.js"
import { cost, count, plural, shortCount } from "../../format.js"
import { oneLine } from "../../text.js"
import { Bar, ended, Legend } from "./bar.js"
import { Cards } from "./cards.js"
import { useStanding } from "./standing.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").RunSet} RunSet
 */

/** Where a set opens. @param {string} id */
export const addressOfSet = (id) => `#/set/${encodeURIComponent(id)}`

/** The mean of the scores, as it is written everywhere. @param {number | null} score */
export const scoreText = (score) => (score === null ? "" : score.toFixed(3))

/** @param {{ source: Source }} props */
export function Sets({ source }) {
  const [found, setFound] = useState(/** @type {RunSet[]} */ ([]))
  const [problem, setProblem] = useState("")
  const ask = useCallback(async () => {
    try {
      const { sets } = await source.sets()
      setFound(sets)
      setProblem("")
      return sets
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message)
      return []
    }
  }, [source])
  useStanding(ask)
  if (problem) return html`<p class="notice wait" role="alert">${problem}</p>`
  if (!found.length) return null
  return html`<section aria-label="Sets of runs">
    <${Cards} noun="set" cards=${found.map((set) => html`<a class="set-card" href=${addressOfSet(set.id)} key=${set.id}>
      <span class="row"><b class="cut" dir="auto">${oneLine(set.id)}</b><span class="dim nowrap">${count(ended(set))} of ${plural(set.tasks, "task")}</span></span>
      <${Bar} set=${set} />
      <span class="row dim wide"><${Legend} set=${set} /><span class="grow"></span>${set.score !== null && html`<span class="nowrap">score ${scoreText(set.score)}</span>`}${set.tokens > 0 && html`<span class="nowrap">${shortCount(set.tokens)} tokens</span>`}${set.cost > 0 && html`<span class="nowrap">${cost(set.cost)}</span>`}</span>
    </a>`)} />
  </section>`
}
