/** A command with a button that copies it. */

import { html, useState } from "../../vendor/preact.js"

/** @param {{ text: string, label?: string }} props */
export function Command({ text, label = "Copy" }) {
  const [told, tell] = useState("")
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      tell("Copied")
    } catch {
      tell("Select it to copy it") // A page that was opened from the disk may not write to the clipboard.
    }
  }
  return html`<div class="cmd"><code class="grow" tabindex="0">${text}</code><button type="button" class="btn line" onClick=${copy}>${told || label}</button><span class="sr" role="status">${told}</span></div>`
}
