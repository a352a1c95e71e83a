/** Two strips of steps, one above the other and aligned: grey where they are the same, in colour where they differ. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js"
import { colours } from "../../components/canvas.js"

/**
 * @typedef {import("../../api.d.ts").Comparison} Comparison
 */

const HEIGHT = 52
const ROW = 14
/** px that a step is wide at most. */
const WIDEST = 28

/** The number of a's steps and b's, as places on one line. @param {Comparison} comparison */
export function extent(comparison) {
  const { from, to } = comparison.columns.a
  return { from, to: Math.max(to, from + 1) }
}

/** @param {{ comparison: Comparison, k: number, theme: string, pick: (k: number) => void }} props */
export function Strip({ comparison, k, theme, pick }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null))
  const [width, setWidth] = useState(0)
  const { from, to } = extent(comparison)
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.round(entry.contentRect.width)))
    if (canvas.current) watch.observe(canvas.current)
    return () => watch.disconnect()
  }, [])
  useLayoutEffect(() => {
    if (canvas.current && width) draw(canvas.current, width, comparison, k)
  }, [comparison, k, width, theme])
  /** @param {any} event */
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect()
    pick(Math.max(from, Math.min(to - 1, from + Math.floor(((event.clientX - box.left) / box.width) * (to - from)))))
  }
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const moves = /** @type {Record<string, number>} */ ({ ArrowRight: k + 1, ArrowLeft: k - 1, PageDown: k + 10, PageUp: k - 10, Home: from, End: to - 1 })
    const target = moves[event.key]
    if (target === undefined) return
    event.preventDefault()
    event.stopPropagation()
    pick(Math.max(from, Math.min(to - 1, target)))
  }
  return html`<div class="strip-box" role="slider" tabindex="0" aria-label="Step" aria-valuemin=${from} aria-valuemax=${to - 1} aria-valuenow=${k} aria-valuetext="step ${k}" onKeyDown=${onKey}>
    <canvas class="strip" ref=${canvas} onClick=${at} aria-hidden="true"></canvas>
  </div>`
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {Comparison} comparison @param {number} k */
function draw(canvas, width, comparison, k) {
  const ratio = devicePixelRatio || 1
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(HEIGHT * ratio)
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  const { from, to } = extent(comparison)
  const one = width / (to - from)
  const colour = colours()
  const { a, b } = comparison.columns
  const differ = comparison.columns.differ
  const bar = Math.max(1, Math.min(one - Math.min(2, one * 0.2), WIDEST))
  const columns = Math.max(a.n, b.n, differ.length)
  const start = (/** @type {number} */ i) => (i >= columns ? null : from + Math.ceil((i * (to - from)) / columns))
  for (let i = 0; i < columns; i++) {
    const step = start(i)
    if (step === null) continue
    const next = start(i + 1) ?? to
    const x = (step - from) * one
    const wide = Math.max(bar, Math.min(next - step, to - step) * one - Math.min(2, one * 0.2))
    const across = next - step > 1 ? wide : bar
    const sign = differ[i]
    const unlike = sign === "x"
    if (inA(comparison, i)) {
      pen.fillStyle = colour(step < comparison.shift ? "line" : unlike || !inB(comparison, i) ? "old-fill" : "act-soft")
      pen.fillRect(x, 2, across, ROW)
    }
    if (inB(comparison, i)) {
      pen.fillStyle = colour(step < 0 ? "line" : unlike || !inA(comparison, i) ? "new-fill" : "act-soft")
      pen.fillRect(x, 20, across, ROW)
    }
  }
  pen.strokeStyle = colour("you")
  pen.lineWidth = 1.5
  pen.strokeRect(Math.max(0.75, (k - from) * one - 1.5), 0.75, Math.max(bar, 3) + 3, 35)
  pen.font = `11px ${getComputedStyle(canvas).getPropertyValue("--mono") || "monospace"}`
  pen.textBaseline = "bottom"
  pen.fillStyle = colour("ink3")
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000].find((n) => n * one > 44) ?? 50_000
  for (let step = Math.ceil(from / every) * every; step < to; step += every) if (Math.abs(step - k) * one > 30 && (step - from) * one + pen.measureText(String(step)).width <= width) pen.fillText(String(step), (step - from) * one, HEIGHT)
  pen.fillStyle = colour("you")
  pen.font = `600 ${pen.font}`
  pen.fillText(String(k), Math.min(width - 24, (k - from) * one), HEIGHT)
}

/** @param {Comparison} comparison @param {number} i */
const inA = (comparison, i) => (comparison.columns.a.mode[i] ?? " ") !== " "
/** @param {Comparison} comparison @param {number} i */
const inB = (comparison, i) => (comparison.columns.b.mode[i] ?? " ") !== " "
