/** Verifying and resuming from the page, and what came of it, shown in place. */

import { html, useState } from "../../vendor/preact.js"
import { NodeValue } from "../../components/node.js"
import { mayRun, withFiles } from "./consent.js"
import { openDialog } from "./dialog.js"
import { Elsewhere, mayAct } from "./elsewhere.js"
import { command } from "./shell_words.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {Awaited<ReturnType<import("../../api.d.ts").Act["verify"]>>["divergences"]} Divergences
 */

/** What `verify` has reported. @param {{ source: Source, run: string, divergences: Divergences, go: (k: number) => void, close: () => void }} props */
export function Verified({ source, run, divergences, go, close }) {
  const [first] = divergences
  if (!first)
    return html`<div class="notice" role="status"><span class="grow">Verified: the code makes the same decisions and changes as recorded. Tools were not run; their results are the recorded ones.</span><button type="button" class="btn icon" aria-label="Close" onClick=${close}>✕</button></div>`
  return html`<section class="diverged" aria-label="First divergence">
    <div class="row"><h3 class="grow">First divergence: step ${first.step}, ${first.phase}${first.run && first.run !== run ? html` of <a href="#/run/${encodeURIComponent(first.run)}?k=${first.step}">a child run</a>` : ""}</h3>
      ${!first.run || first.run === run ? html`<button type="button" class="btn line" onClick=${() => go(first.step)}>Go to step ${first.step}</button>` : null}
      <button type="button" class="btn icon" aria-label="Close" onClick=${close}>✕</button></div>
    <div class="twins"><div><h4>Recorded</h4>${first.expected ? html`<${NodeValue} source=${source} run=${run} node=${first.expected} />` : html`<p class="dim">nothing</p>`}</div>
      <div><h4>Now</h4>${first.actual ? html`<${NodeValue} source=${source} run=${run} node=${first.actual} />` : html`<p class="dim">nothing</p>`}</div></div>
    ${divergences.length > 1 && html`<p class="dim">${divergences.length - 1} more follow from it or come after it.</p>`}
  </section>`
}

const TITLES = /** @type {Record<string, string>} */ ({ verify: "Verify this run", resume: "Resume this run" })

/**
 * The buttons, and below them what came of them. On a page that only shows, they lead to the command.
 *
 * @param {{ source: Source, run: import("../../api.d.ts").Run, resumable: boolean, go: (k: number) => void }} props
 */
export function Actions({ source, run, resumable, go }) {
  const acts = mayAct(source, run)
  const [busy, setBusy] = useState("")
  const [failed, setFailed] = useState("")
  const [divergences, setDivergences] = useState(/** @type {Divergences | null} */ (null))
  /** @param {string} name @param {() => Promise<void>} act */
  const run1 = async (name, act) => {
    if (busy) return
    if (!acts) return void openDialog(() => html`<div class="inner stack"><${Elsewhere} source=${source} run=${run} text=${command(name, run)} /></div>`, { label: /** @type {string} */ (TITLES[name]) })
    setBusy(name)
    setFailed("")
    setDivergences(null)
    try {
      if (await mayRun(source, run.id)) await act()
    } catch (error) {
      setFailed(/** @type {Error} */ (error).message)
    } finally {
      setBusy("")
    }
  }
  const act = source.act
  return html`<span class="acts">
      <button type="button" class="btn ${acts ? "" : "shell"}" aria-disabled=${String(busy !== "")} onClick=${() => run1("verify", async () => act && setDivergences((await act.verify(run.id)).divergences))}>${busy === "verify" ? "Verifying …" : "Verify"}</button>
      ${resumable && html`<button type="button" class="btn ${acts ? "" : "shell"}" aria-disabled=${String(busy !== "")} onClick=${() => run1("resume", async () => void (act && (await withFiles((withoutFiles) => act.resume(run.id, withoutFiles)))))}>${busy === "resume" ? "Resuming …" : "Resume"}</button>`}
    </span>
    <div role="alert">${failed && html`<p class="problem">${failed}</p>`}</div>
    ${divergences && html`<${Verified} source=${source} run=${run.id} divergences=${divergences} go=${go} close=${() => setDivergences(null)} />`}`
}
