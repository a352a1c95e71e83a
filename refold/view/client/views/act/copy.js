/** Buttons that copy, and a command with one. */

import { html, useState } from "../../vendor/preact.js"

/** @param {{ text: () => string | Promise<string>, label: string, failed?: string }} props */
export function CopyButton({ text, label, failed = "The browser refused" }) {
  const [message, setMessage] = useState("")
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await text())
      setMessage("Copied")
    } catch {
      setMessage(failed) // A page that was opened from the disk may not write to the clipboard.
    }
  }
  return html`<button type="button" class="btn line" onClick=${copy}>${message || label}</button><span class="sr" role="status">${message}</span>`
}

/** @param {{ text: string, label?: string }} props */
export const Command = ({ text, label = "Copy" }) =>
  html`<div class="cmd"><code class="grow" tabindex="0">${text}</code><${CopyButton} text=${() => text} label=${label} failed="Select it to copy it" /></div>`
