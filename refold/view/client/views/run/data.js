/** What the Run view knows of its run: asked for once, and again where it has grown. */

import { useCallback, useEffect, useRef, useState } from "../../vendor/preact.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").Run} RunInfo
 * @typedef {import("../../api.d.ts").StepRow} StepRow
 * @typedef {{ row: (k: number) => StepRow | null, load: (from: number, to: number) => void }} Rows
 */

/** How often a run that grows is asked about at most, in ms. */
const PACE = 400
const PART = 200
/** Parts of the list of steps that are kept. */
const KEPT = 40

/**
 * The answer to a question, asked again when `asked` changes; an answer that comes too late is dropped.
 * While the new one is on its way, the old one stays.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {any[]} asked
 * @returns {{ value: T | null, error: Error | null }}
 */
export function useAnswer(ask, asked) {
  const [found, setFound] = useState(/** @type {{ value: T | null, error: Error | null }} */ ({ value: null, error: null }))
  useEffect(() => {
    let wanted = true
    ask().then(
      (value) => wanted && setFound({ value, error: null }),
      (error) => wanted && setFound({ value: null, error }),
    )
    return () => void (wanted = false)
  }, asked)
  return found
}

/**
 * The run, and a version that changes when it has grown.
 * @param {Source} source @param {string} id
 * @returns {{ run: RunInfo | null, error: Error | null, refresh: () => void }}
 */
export function useRun(source, id) {
  const [run, setRun] = useState(/** @type {RunInfo | null} */ (null))
  const [error, setError] = useState(/** @type {Error | null} */ (null))
  const state = useRef({ busy: false, again: false, gone: false, timer: 0 })
  const refresh = useCallback(() => {
    const held = state.current
    if (held.gone) return
    if (held.busy) return void (held.again = true)
    held.busy = true
    source
      .run(id)
      .then(
        (found) => {
          if (held.gone) return
          setRun(found)
          setError(null)
        },
        (problem) => !held.gone && setError(problem),
      )
      .finally(() => {
        held.timer = window.setTimeout(() => {
          held.busy = false
          if (held.again) {
            held.again = false
            refresh()
          }
        }, PACE)
      })
  }, [source, id])
  useEffect(() => {
    const held = { busy: false, again: false, gone: false, timer: 0 }
    state.current = held
    refresh()
    const stop = source.live ? source.events(id, () => refresh()) : () => {}
    return () => {
      held.gone = true
      clearTimeout(held.timer)
      stop()
    }
  }, [source, id])
  return { run, error, refresh }
}

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
      const held = parts.current.get(part)
      const whole = held && held.rows.length === PART && held.rows.every((row) => row.committed)
      if ((held && (whole || held.version === version)) || busy.current.has(part)) continue
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
