/** What drawings need of the style sheet and of the screen. */

/** @param {string} name - of a token @returns {string} */
export const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

/**
 * Make a canvas as sharp as the screen, and return its context with CSS pixels as units.
 * @param {HTMLCanvasElement} canvas @returns {{ pen: CanvasRenderingContext2D, width: number, height: number }}
 */
export function sharp(canvas) {
  const { width, height } = canvas.getBoundingClientRect()
  const scale = devicePixelRatio || 1
  canvas.width = Math.max(1, Math.round(width * scale))
  canvas.height = Math.max(1, Math.round(height * scale))
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))
  pen.setTransform(scale, 0, 0, scale, 0, 0)
  pen.clearRect(0, 0, width, height)
  return { pen, width, height }
}
