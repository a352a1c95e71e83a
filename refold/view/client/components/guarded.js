/** A part of the page whose failure takes no other part with it. */

import { html, useErrorBoundary } from "../vendor/preact.js"

/** @param {{ what: string, children?: any }} props - what: "run", for the sentence that stands in its place */
export function Guarded({ what, children }) {
  const [error] = useErrorBoundary((failed) => console.error(failed))
  return error ? html`<p class="problem" role="alert">This ${what} cannot be shown: ${error instanceof Error ? error.message : String(error)}</p>` : children
}
