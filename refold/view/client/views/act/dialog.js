/** Dialogs: one element of the platform's own, which keeps the focus inside and gives it back. */

import { html, render } from "../../vendor/preact.js"

/**
 * @param {(close: () => void) => any} content
 * @param {{ label: string, closed?: () => void }} options
 * @returns {() => void} closes it
 */
export function openDialog(content, { label, closed }) {
  const dialog = document.createElement("dialog")
  const id = `dialog-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 6)}`
  dialog.setAttribute("aria-labelledby", id)
  const before = /** @type {HTMLElement | null} */ (document.activeElement)
  const close = () => dialog.close()
  addEventListener("hashchange", close) // it belongs to what the address showed
  dialog.addEventListener("close", () => {
    removeEventListener("hashchange", close)
    render(null, dialog)
    dialog.remove()
    before?.focus?.()
    closed?.()
  })
  document.body.append(dialog)
  render(html`<header><h2 id=${id} class="grow">${label}</h2><button type="button" class="btn icon" aria-label="Close" onClick=${close}>✕</button></header>${content(close)}`, dialog)
  dialog.showModal()
  return close
}
