/** What the list of runs has loaded, kept up to date while other processes write. */

import { useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js"
import { isOlder } from "../../marks.js"
import { Lines, PAGE } from "./lines.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").RunQuery} RunQuery
 * @typedef {import("../../api.d.ts").RunPage} RunPage
 */

const STILL_INDEXING_MS = 700
/** After runs that came, went or changed their status, all that is shown is asked for at most so often. */
const SETTLE_MS = 400
/** After other changes, the sums and counts are asked for at most so often. */
const SUMS_MS = 1000

/**
 * @param {Source} source
 * @param {RunQuery} query
 * @param {string[]} open - runs whose families are unfolded
 */
export function useRuns(source, query, open) {
  const key = JSON.stringify(query)
  const lines = useMemo(() => new Lines(), [source, key])
  const current = useRef(lines)
  /** The mark of the last event: answers before it are asked for again. */
  const heard = useRef(/** @type {string | null} */ (null))
  /** The mark of what is shown; null: nothing is. */
  const known = useRef(/** @type {string | null} */ (null))
  if (current.current !== lines) known.current = null
  current.current = lines
  const [page, setPage] = useState(/** @type {RunPage | null} */ (null))
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null))
  const [version, redraw] = useState(0)
  const [again, setAgain] = useState(0)
  const requested = useRef(/** @type {Set<string>} */ (new Set()))
  const timer = useRef(0)
  lines.open = new Set(open)

  const load = useCallback(
    /** @param {number} offset @param {boolean} [anew] */
    async (offset, anew) => {
      const question = `${key} ${offset}`
      if (requested.current.has(question) && !anew) return
      requested.current.add(question)
      try {
        const page = await source.runs({ ...query, offset, limit: PAGE })
        if (current.current !== lines) return
        if (anew || known.current === null) known.current = page.seen ?? null
        if (heard.current && isOlder(page.seen, heard.current)) later()
        lines.take(offset, page)
        setPage(page)
        setProblem(null)
        redraw((n) => n + 1)
      } catch (error) {
        if (current.current === lines) setProblem(/** @type {Error} */ (error))
      } finally {
        requested.current.delete(question)
      }
    },
    [source, key, lines],
  )
  const refresh = useCallback(() => {
    setAgain((/** @type {number} */ n) => n + 1)
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

  const asks = useRef({ all: refresh, sums: () => load(0, true) })
  asks.current = { all: refresh, sums: () => load(0, true) }
  const wanted = useRef(/** @type {"all" | "sums"} */ ("sums"))
  /** Ask again a moment later: for all that is shown, or for the sums and counts. @param {"all" | "sums"} [what] */
  function later(what = "all") {
    if (what === "all") wanted.current = what
    if (timer.current) return
    const ask = () => {
      const now = wanted.current
      timer.current = 0
      wanted.current = "sums"
      void asks.current[now]()
    }
    timer.current = window.setTimeout(ask, what === "all" ? SETTLE_MS : SUMS_MS)
  }

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
    const stop = source.events(null, (event) => {
      heard.current = event.seen ?? null
      if (event.type === "hello") {
        if (!event.seen || (known.current !== null && isOlder(known.current, event.seen))) later()
      } else if (event.type === "runs") {
        if (known.current !== null) known.current = event.seen
        const inPlace = current.current.update(event.rows)
        redraw((n) => n + 1)
        later(inPlace && !event.removed.length ? "sums" : "all")
      }
    })
    return () => {
      clearTimeout(timer.current)
      timer.current = 0
      stop()
    }
  }, [source])

  return { lines, page, problem, version, again, load, refresh }
}
