/** The runs that are selected: kept while one walks from view to view, until the page is closed. */

import { useEffect, useState } from "../../vendor/preact.js"

/** @type {Set<string>} */
const chosen = new Set()
/** @type {Set<() => void>} */
const listeners = new Set()

/** The ids that are selected, in the order of their selection. */
export const selected = () => [...chosen]

/** Select a run, or no longer. @param {string} id @param {boolean} [on] */
export function select(id, on = !chosen.has(id)) {
  if (on) chosen.add(id)
  else chosen.delete(id)
  for (const heard of [...listeners]) heard()
}

/** Select nothing. */
export function clearSelection() {
  chosen.clear()
  for (const heard of [...listeners]) heard()
}

/** The ids that are selected, for a component that is drawn anew with them. @returns {string[]} */
export function useSelection() {
  const [ids, set] = useState(selected)
  useEffect(() => {
    const heard = () => set(selected())
    listeners.add(heard)
    heard()
    return () => void listeners.delete(heard)
  }, [])
  return ids
}
