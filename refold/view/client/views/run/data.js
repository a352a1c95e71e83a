/** What the Run view knows of its run: asked for once, and again where it has grown. */

import { isOlder } from "../../marks.js"
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").Run} RunInfo
 * @typedef {import("../../api.d.ts").StepRow} StepRow
 * @typedef {import("../../api.d.ts").LiveEvent} LiveEvent
 * @typedef {{ row: (k: number) => StepRow | null, load: (from: number, to: number) => void }} Rows
 */

/** How often a run that grows is asked about at most, in ms. */
const PACE = 400
const PART = 100
/** Parts of the list of steps that are kept. */
const KEPT = 80

/**
 * The answer to a question, asked again when `deps` changes; an answer that comes too late is dropped. While the new one
 * is on its way, the old one stays. The question is asked at once, so that all questions of one drawing make one request.
 * `isWhole` says of an answer that comes in parts
 * whether it is the last part: until then, the question is asked on.
 * @template T
 * @param {() => Promise<T>} ask @param {any[]} deps @param {(value: T) => boolean} [isWhole]
 * @returns {{ value: T | null, error: Error | null }}
 */
export function useAnswer(ask, deps, isWhole = () => true) {
  const [answer, setAnswer] = useState(/** @type {{ value: T | null, error: Error | null }} */ ({ value: null, error: null }))
  useLayoutEffect(() => {
    let wanted = true
    const askOn = async () => {
      try {
        for (let whole = false; wanted && !whole; ) {
          const value = await ask()
          if (wanted) setAnswer({ value, error: null })
          whole = isWhole(value)
        }
      } catch (error) {
        if (wanted) setAnswer({ value: null, error: /** @type {Error} */ (error) })
      }
    }
    void askOn()
    return () => void (wanted = false)
  }, deps)
  return answer
}

/**
 * The run, and a version that changes when it has grown. It is asked about again if an event says what the last answer
 * does not have.
 * @param {Source} source @param {string} id
 * @returns {{ run: RunInfo | null, error: Error | null, refresh: () => void }}
 */
export function useRun(source, id) {
  const [run, setRun] = useState(/** @type {RunInfo | null} */ (null))
  const [error, setError] = useState(/** @type {Error | null} */ (null))
  const state = useRef({ busy: false, again: false, gone: false, timer: 0, heard: /** @type {LiveEvent[]} */ ([]), run: /** @type {RunInfo | null} */ (null) })
  const refresh = useCallback(() => {
    const now = state.current
    if (now.gone) return
    if (now.busy) return void (now.again = true)
    now.busy = true
    source
      .run(id)
      .then(
        (answer) => {
          if (now.gone) return
          now.run = answer
          setRun(answer)
          setError(null)
        },
        (problem) => !now.gone && setError(problem),
      )
      .finally(() => {
        now.timer = window.setTimeout(() => {
          const due = now.again || now.heard.some((event) => isNews(now.run, event))
          now.busy = now.again = false
          now.heard = []
          if (due) refresh()
        }, PACE)
      })
  }, [source, id])
  useEffect(() => {
    const now = { busy: false, again: false, gone: false, timer: 0, heard: /** @type {LiveEvent[]} */ ([]), run: /** @type {RunInfo | null} */ (null) }
    state.current = now
    refresh()
    /** @param {LiveEvent} event */
    const heard = (event) => {
      if (now.busy) now.heard = [...now.heard.slice(-1), event] // a hello, and the newest
      else if (isNews(now.run, event)) refresh()
    }
    const stop = source.live ? source.events(id, heard) : () => {}
    return () => {
      now.gone = true
      clearTimeout(now.timer)
      stop()
    }
  }, [source, id])
  return { run, error, refresh }
}

/** Whether an event says what an answer does not have. @param {RunInfo | null} run @param {LiveEvent} event */
const isNews = (run, event) => !run || run.indexed !== null || isOlder(run.seen, event.seen) || (event.type === "run" && event.version !== run.version)

/**
 * Rows of the list of steps, loaded in parts as they come into sight.
 * @param {Source} source @param {string} id @param {number} size @param {string} version
 * @returns {Rows}
 */
export function useStepRows(source, id, size, version) {
  const [, setLoaded] = useState(0)
  const parts = useRef(/** @type {Map<number, { rows: StepRow[], version: string }>} */ (new Map()))
  const busy = useRef(new Set())
  const load = (/** @type {number} */ from, /** @type {number} */ to) => {
    for (let part = Math.floor(from / PART); part * PART < Math.min(to, size); part++) {
      const loaded = parts.current.get(part)
      const whole = loaded && loaded.rows.length === PART && loaded.rows.every((row) => row.committed)
      if ((loaded && (whole || loaded.version === version)) || busy.current.has(part)) continue
      busy.current.add(part)
      source
        .steps(id, part * PART, Math.min(size, (part + 1) * PART))
        .then((rows) => {
          parts.current.delete(part)
          parts.current.set(part, { rows, version })
          if (parts.current.size > KEPT) parts.current.delete(/** @type {number} */ (parts.current.keys().next().value))
          setLoaded((n) => n + 1)
        })
        .catch(() => {}) // the rows stay empty; the run itself tells what is wrong
        .finally(() => busy.current.delete(part))
    }
  }
  /** @param {number} k @returns {StepRow | null} */
  const row = (k) => parts.current.get(Math.floor(k / PART))?.rows[k % PART] ?? null
  return { row, load }
}
