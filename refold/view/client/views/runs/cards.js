/**
 * The sets and evaluations of the folder, for the cards above the list of its runs.
 *
 * They are asked for with the list, which is not drawn before they are there: a card that came later would push it down. The
 * samples of an evaluation may take seconds to read; until then, its card has no figures.
 */

import { useCallback, useRef, useState } from "../../vendor/preact.js"
import { useStanding } from "../sets/standing.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").RunSet} RunSet
 * @typedef {import("../../api.d.ts").EvaluationCard} EvaluationCard
 * @typedef {{ sets: RunSet[], evaluations: EvaluationCard[], total: number, problems: string[] }} Cards - total: evaluations, of which many are not listed
 */

/** @type {Cards} */
const NONE = { sets: [], evaluations: [], total: 0, problems: [] }

/**
 * @param {Source} source
 * @param {number} again - another number when the list has been asked for again
 * @returns {Cards | null} - null: not known yet
 */
export function useCards(source, again) {
  const [cards, setCards] = useState(/** @type {Cards | null} */ (null))
  const reads = useRef(false)
  /** @param {Partial<Cards>} news */
  const take = (news) => setCards((/** @type {Cards | null} */ old) => ({ ...(old ?? NONE), ...news }))
  const read = useCallback(async () => {
    if (reads.current) return
    reads.current = true
    try {
      take(await source.evaluations(false))
    } catch (error) {
      take({ problems: [/** @type {Error} */ (error).message] })
    } finally {
      reads.current = false
    }
  }, [source])
  const ask = useCallback(async () => {
    const [sets, evaluations] = await Promise.allSettled([source.sets(), source.evaluations(true)])
    const problems = [sets, evaluations].flatMap((each) => (each.status === "rejected" ? [/** @type {Error} */ (each.reason).message] : []))
    take({ ...(sets.status === "fulfilled" && sets.value), ...(evaluations.status === "fulfilled" && evaluations.value), problems: [...new Set(problems)] })
    if (evaluations.status === "fulfilled" && evaluations.value.evaluations.some((each) => each.problem === null && each.unread)) void read()
    return sets.status === "fulfilled" ? sets.value.sets : []
  }, [source, read])
  useStanding(ask, again)
  return cards
}
