/** The signs of modes and statuses: each meaning has a shape beside its colour. */

import { html } from "../vendor/preact.js"

/** Colour token and drawing, on 12 by 12. @type {Record<string, [string, any]>} */
const SIGNS = {
  act: ["act", html`<circle cx="6" cy="6" r="3" />`],
  branch: ["kin-fill", html`<path d="M6 1.2 10.8 6 6 10.8 1.2 6z" />`],
  wait: ["wait-fill", html`<path d="M2.6 2h2.4v8H2.6zM7 2h2.4v8H7z" />`],
  final: ["ink", html`<rect x="2.5" y="2.5" width="7" height="7" rx="1" />`],
  error: ["error-fill", html`<path d="M6 1 11.4 10.6H.6z" />`],
  open: ["you", html`<circle cx="6" cy="6" r="3.2" fill="none" stroke="currentColor" stroke-width="1.6" />`],
  completed: ["ink2", html`<path d="M2 6.5 4.8 9.2 10.1 3.1" fill="none" stroke="currentColor" stroke-width="1.7" />`],
  stopped: ["ink2", html`<rect x="2.8" y="2.8" width="6.4" height="6.4" rx="1" fill="none" stroke="currentColor" stroke-width="1.6" />`],
  running: ["you", html`<circle cx="6" cy="6" r="3.6" />`],
  interrupted: ["ink2", html`<path d="M1.6 6h3.2M7.2 6h3.2" fill="none" stroke="currentColor" stroke-width="1.8" />`],
  corrupt: ["error-fill", html`<path d="M2.5 2.5l7 7M9.5 2.5l-7 7" fill="none" stroke="currentColor" stroke-width="1.8" />`],
}
const SAME = /** @type {Record<string, string>} */ ({ waiting: "wait", failed: "error", errored: "error", lost: "corrupt", queued: "interrupted", cancelled: "interrupted" })

/** @param {{ name: string }} props */
export function Glyph({ name }) {
  const [colour, drawing] = SIGNS[SAME[name] ?? name] ?? /** @type {[string, any]} */ (SIGNS.act)
  return html`<svg class="glyph g-${colour} ${name === "running" ? "pulse" : ""}" width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" fill="currentColor">${drawing}</svg>`
}

/** The sign's name for a character of a run's shape. */
export const MODES = /** @type {Record<string, string>} */ ({ ".": "act", B: "branch", W: "wait", F: "final", E: "error", O: "open" })

/** The sign of a step. @param {import("../api.d.ts").StepRow} step */
export const signOf = (step) => (step.mode === "open" && step.sign === "." ? "open" : (MODES[step.sign] ?? step.mode))
