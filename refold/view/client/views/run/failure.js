/** Why a run failed: the error, where it was raised, and the user's own lines before refold's. */

import { html } from "../../vendor/preact.js"
import { count } from "../../format.js"
import { oneLine, visible } from "../../text.js"

/** @param {{ failure: import("../../api.d.ts").Failure, go?: ((k: number) => void) | null }} props - go: to the failing step, if it is not what is looked at */
export function Failure({ failure, go }) {
  const { step, hook, place, code, traceback } = failure
  const named = hook && !hook.startsWith("the ") ? html`<code>${oneLine(hook, 60)}</code>` : oneLine(hook ?? "", 60)
  const where = step === null ? "" : go ? html`<button type="button" class="at" onClick=${() => go(step)}>step ${count(step)}</button>` : `step ${count(step)}`
  return html`<pre class="block bad" tabindex="0"><b>${oneLine(failure.type, 80)}</b>: ${visible(failure.message)}</pre>
    ${(hook || place) && html`<p class="raised">Raised ${hook ? html`in ${named}` : ""}${where ? html`${hook ? " of " : "in "}${where}` : ""}${place ? html`, at <code>${oneLine(place, 120)}</code>` : ""}</p>`}
    ${code && html`<pre class="block" tabindex="0" aria-label="Your code">${visible(code)}</pre>`}
    ${traceback && html`<details class="quiet"><summary>${code ? "The whole traceback, with refold's frames" : "The traceback"}</summary><pre class="block" tabindex="0">${visible(traceback)}</pre></details>`}`
}
