/** Asks again and again while a set is at work: its table tells nobody that it has changed. */

import { useEffect, useRef } from "../../vendor/preact.js"

/** @typedef {import("../../api.d.ts").RunSet} RunSet */

const AGAIN_MS = 2000

/** Whether a set has tasks that may still end. @param {RunSet} set */
export const isAtWork = (set) => Boolean(set.counts.running || set.counts.queued)

/**
 * Calls `ask` now, when `again` has changed, and every two seconds while one of the sets that it returns is at work and the
 * page is in sight; never sooner than two seconds after the last call.
 *
 * @param {() => Promise<RunSet[]>} ask
 * @param {number} [again]
 */
export function useStanding(ask, again = 0) {
  const last = useRef(-AGAIN_MS)
  useEffect(() => {
    let timer = 0
    let gone = false
    const look = async () => {
      const isFirst = last.current < 0
      last.current = performance.now()
      const sets = document.hidden && !isFirst ? null : await ask()
      if (!gone && (sets === null || sets.some(isAtWork))) timer = window.setTimeout(look, AGAIN_MS)
    }
    const rest = last.current + AGAIN_MS - performance.now()
    if (rest > 0) timer = window.setTimeout(look, rest)
    else void look()
    return () => ((gone = true), clearTimeout(timer))
  }, [ask, again])
}
