/** Asks again and again while a set is at work: its table tells nobody that it has changed. */

import { useEffect } from "../../vendor/preact.js"

/** @typedef {import("../../api.d.ts").RunSet} RunSet */

const AGAIN_MS = 2000

/** Whether a set has tasks that may still end. @param {RunSet} set */
export const isAtWork = (set) => Boolean(set.counts.running || set.counts.queued)

/**
 * Calls `ask` now, and every two seconds while one of the sets that it returns is at work and the page is in sight.
 *
 * @param {() => Promise<RunSet[]>} ask
 */
export function useStanding(ask) {
  useEffect(() => {
    let timer = 0
    let gone = false
    const look = async () => {
      const sets = document.hidden ? null : await ask()
      if (!gone && (sets === null || sets.some(isAtWork))) timer = window.setTimeout(look, AGAIN_MS)
    }
    void look()
    return () => ((gone = true), clearTimeout(timer))
  }, [ask])
}
