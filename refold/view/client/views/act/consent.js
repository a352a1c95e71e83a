/** The question before code runs that a trace names: answered by a person alone, and remembered by the server. */

import { html, useEffect, useRef } from "../../vendor/preact.js"
import { openDialog } from "./dialog.js"

/** @typedef {import("../../api.d.ts").Source} Source */

/**
 * Ask whether the run's module may run, if it has to be asked; throw an Error that says why nothing can run.
 *
 * @param {Source} source
 * @param {string} run
 * @returns {Promise<boolean>}
 */
export async function mayRun(source, run) {
  const { act } = source
  if (!act) throw new Error("This page only shows.")
  const offer = await act.offered(run)
  if (!offer.module && !offer.question) throw new Error("The server has no module for this run; start it with --allow-actions MODULE:CLASS.")
  if (!offer.question) return true
  const { question, module } = offer
  const yes = await new Promise((resolve) => {
    openDialog(
      (close) =>
        html`<${Question} module=${module} question=${question} answer=${(/** @type {boolean} */ yes) => {
          resolve(yes)
          close()
        }} />`,
      { label: "Run this module's code?", closed: () => resolve(false) },
    )
  })
  if (yes) await act.agree(run, question)
  return yes
}

/** @param {{ module: string | null, question: string, answer: (yes: boolean) => void }} props */
function Question({ module, question, answer }) {
  const no = useRef(/** @type {HTMLButtonElement | null} */ (null))
  useEffect(() => no.current?.focus(), [])
  return html`<div class="inner">
      <p class="why">${question}</p>
      ${module && html`<p class="mono">${module}</p>`}
      <p class="ink2">Its code can do whatever you can do on this computer. Say yes only if you trust it.</p>
    </div>
    <footer><button type="button" class="btn main" onClick=${() => answer(true)}>Run it</button><button type="button" class="btn" ref=${no} onClick=${() => answer(false)}>Cancel</button></footer>`
}
