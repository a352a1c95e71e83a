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
  const warning = "Its code can do whatever you can do on this computer. Say yes only if you trust it."
  const yes = await confirmed("Run this module's code?", question, module, warning, "Run it")
  if (yes) await act.agree(run, question)
  return yes
}

/**
 * Act; if files of the run are gone, ask a person, and act without them.
 *
 * @template T
 * @param {(withoutFiles: boolean) => Promise<T>} act
 * @returns {Promise<T>}
 */
export async function withFiles(act) {
  try {
    return await act(false)
  } catch (error) {
    const { kind, message } = /** @type {import("../../remote.js").ProblemError} */ (error)
    if (kind !== "files_lost" || !(await confirmed("Go on without these files?", message, null, "The run goes on with the files as they were at first.", "Go on without them"))) throw error
    return act(true)
  }
}

/** @param {string} label @param {string} text @param {string | null} module @param {string} warning @param {string} yes @returns {Promise<boolean>} */
const confirmed = (label, text, module, warning, yes) =>
  new Promise((resolve) => {
    openDialog(
      (close) =>
        html`<${Question} text=${text} module=${module} warning=${warning} yes=${yes} answer=${(/** @type {boolean} */ answer) => {
          resolve(answer)
          close()
        }} />`,
      { label, closed: () => resolve(false) },
    )
  })

/** @param {{ text: string, module: string | null, warning: string, yes: string, answer: (yes: boolean) => void }} props */
function Question({ text, module, warning, yes, answer }) {
  const no = useRef(/** @type {HTMLButtonElement | null} */ (null))
  useEffect(() => no.current?.focus(), [])
  return html`<div class="inner">
      <p class="why">${text}</p>
      ${module && html`<p class="mono">${module}</p>`}
      <p class="ink2">${warning}</p>
    </div>
    <footer><button type="button" class="btn main" onClick=${() => answer(true)}>${yes}</button><button type="button" class="btn" ref=${no} onClick=${() => answer(false)}>Cancel</button></footer>`
}
