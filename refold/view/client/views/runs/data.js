/** What the list of runs has loaded, kept up to date while other processes write. */

import { useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js"
import { Lines, PAGE } from "./lines.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").RunQuery} RunQuery
 * @typedef {import("../../api.d.ts").RunPage} RunPage
 */

const STILL_INDEXING_MS = 700
/** Runs that were not there before are asked for at most so often. */
const SETTLE_MS = 400

/**
 * @param {Source} source
 * @param {RunQuery} query
 * @param {string[]} open - runs whose families are unfolded
 */
export function useRuns(source, query, open) {
  const key = JSON.stringify(query)
  const lines = useMemo(() => new Lines(), [source, key])
  const current = useRef(lines)
  current.current = lines
  const [page, setPage] = useState(/** @type {RunPage | null} */ (null))
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null))
  const [version, redraw] = useState(0)
  const asked = useRef(/** @type {Set<string>} */ (new Set()))
  lines.open = new Set(open)

  const load = useCallback(
    /** @param {number} offset @param {boolean} [anew] */
    async (offset, anew) => {
      const question = `${key} ${offset}`
      if (asked.current.has(question) && !anew) return
      asked.current.add(question)
      try {
        const found = await source.runs({ ...query, offset, limit: PAGE })
        if (current.current !== lines) return
        lines.take(offset, found)
        setPage(found)
        setProblem(null)
        redraw((n) => n + 1)
      } catch (error) {
        if (current.current === lines) setProblem(/** @type {Error} */ (error))
      } finally {
        asked.current.delete(question)
      }
    },
    [source, key, lines],
  )
  const refresh = useCallback(() => {
    const offsets = new Set([0, ...[...lines.rows.keys()].map((place) => Math.floor(place / PAGE) * PAGE)])
    for (const offset of offsets) void load(offset, true)
    for (const id of lines.below.keys()) if (lines.open.has(id)) void unfold(id, true)
  }, [load, lines])
  const unfold = useCallback(
    /** @param {string} id @param {boolean} [anew] */
    async (id, anew) => {
      if (lines.below.has(id) && !anew) return
      try {
        lines.takeFamily((await source.family(id)).nodes)
        redraw((n) => n + 1)
      } catch (error) {
        setProblem(/** @type {Error} */ (error))
      }
    },
    [source, lines],
  )

  useEffect(() => void load(0), [load])
  useEffect(() => {
    for (const id of open) void unfold(id)
  }, [unfold, open.join("\n")])
  useEffect(() => {
    if (page?.indexing == null) return
    const timer = setTimeout(() => void load(0, true), STILL_INDEXING_MS)
    return () => clearTimeout(timer)
  }, [page, load])
  useEffect(() => {
    let timer = 0
    const later = () => {
      if (!timer) timer = window.setTimeout(() => ((timer = 0), refresh()), SETTLE_MS)
    }
    const stop = source.events(null, (event) => {
      if (event.type === "hello") later()
      if (event.type !== "runs") return
      const known = lines.update(event.rows)
      redraw((n) => n + 1)
      if (!known || event.removed.length) later()
    })
    return () => (clearTimeout(timer), stop())
  }, [source, lines, refresh])

  return { lines, page, problem, version, load, refresh }
}
