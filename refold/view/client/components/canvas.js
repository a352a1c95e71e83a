/** What drawings need of the style sheet and of the screen. */

import { useEffect, useState } from "../vendor/preact.js"

/** @typedef {{ width: number, height: number }} Size - in CSS pixels */

/** @type {Record<string, Record<string, string>>} */
const themes = {}

/** The present theme's colours by the name of their token: each is looked up once, as the look makes the browser work out all styles. @returns {(name: string) => string} */
export function colours() {
  const known = (themes[document.documentElement.dataset.theme ?? ""] ??= {})
  return (name) => (known[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim())
}

/**
 * The size of an element, as the browser reports it after each layout: to ask for it would lay out the page at once.
 * @param {{ current: Element | null }} place @param {any} [again] - the element may be another one when this has changed
 * @returns {Size | null} - null: not laid out yet
 */
export function useSize(place, again) {
  const [size, setSize] = useState(/** @type {Size | null} */ (null))
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => {
      const { width, height } = /** @type {ResizeObserverEntry} */ (entry).contentRect
      setSize((old) => (old && old.width === width && old.height === height ? old : { width, height }))
    })
    if (place.current) watch.observe(place.current)
    return () => watch.disconnect()
  }, [again])
  return size
}

/**
 * Make a canvas as sharp as the screen, and return its context with CSS pixels as units.
 * @param {HTMLCanvasElement} canvas @param {Size} size @returns {CanvasRenderingContext2D}
 */
export function sharp(canvas, { width, height }) {
  const scale = devicePixelRatio || 1
  canvas.width = Math.max(1, Math.round(width * scale))
  canvas.height = Math.max(1, Math.round(height * scale))
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))
  pen.setTransform(scale, 0, 0, scale, 0, 0)
  pen.clearRect(0, 0, width, height)
  return pen
}
