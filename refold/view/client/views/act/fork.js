/** The dialog that forks a run: values to be changed in a state, what to do with recorded effects, and the command. */

import { html, useEffect, useRef, useState } from "../../vendor/preact.js"
import { mayRun } from "./consent.js"
import { Command } from "./copy.js"
import { openDialog } from "./dialog.js"
import { forkCommand } from "./shell_words.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").Node} Node
 * @typedef {import("../../api.d.ts").Json} Json
 * @typedef {{ path: string, text: string | null }} Edit - text: what was typed, null: nothing yet
 */

/** Fields that the engine writes. */
const ENGINE = new Set(["task", "current_step", "max_steps", "schema_version", "final_result", "stop_reason"])
/** A value longer than this is not put into the field; it is typed anew or left as it is. */
const EDITABLE = 2000

/**
 * Open the dialog.
 *
 * @param {object} options
 * @param {Source} options.source
 * @param {string} options.run
 * @param {number} options.k - the state that the fork starts from
 * @param {string | null} [options.path] - the value to be changed
 * @param {boolean} options.allowed - whether this page may act
 */
export function openFork({ source, run, k, path, allowed }) {
  openDialog((close) => html`<${Fork} source=${source} run=${run} k=${k} path=${path ?? null} allowed=${allowed} close=${close} />`, { label: `Fork from state ${k}` })
}

/** What is typed as a value: JSON, or text as it stands. @param {string} text @returns {Json} */
export function valueOf(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A value as far as it is loaded, as JSON; null if a part of it is missing. @param {Node} node @returns {string | null} */
export function jsonOf(node) {
  const value = wholeOf(node)
  return value === undefined ? null : JSON.stringify(value)
}

/** @param {Node} node @returns {Json | undefined} */
function wholeOf(node) {
  if (node.kind === "object" || node.kind === "array") {
    const children = node.children ?? []
    if (children.length !== node.size) return undefined
    const values = children.map(wholeOf)
    if (values.some((value) => value === undefined)) return undefined
    return node.kind === "array" ? /** @type {Json[]} */ (values) : Object.fromEntries(children.map((child, i) => [String(child.key), /** @type {Json} */ (values[i])]))
  }
  if (node.kind === "text" && String(node.value ?? "").length !== node.size) return undefined
  if (node.raw !== undefined) return undefined
  return node.value ?? null
}

/** The paths of a state's leaves, for the list to choose from. @param {Node} node @param {string} path @returns {string[]} */
function leaves(node, path) {
  if ((node.kind !== "object" && node.kind !== "array") || !node.children?.length) return path ? [path] : []
  return node.children.flatMap((child) => leaves(child, `${path}/${String(child.key).replace(/~/g, "~0").replace(/\//g, "~1")}`))
}

/** @param {{ source: Source, run: string, k: number, path: string | null, allowed: boolean, close: () => void }} props */
function Fork({ source, run, k, path, allowed, close }) {
  const [paths, setPaths] = useState(/** @type {string[]} */ ([]))
  const [edits, setEdits] = useState(/** @type {Edit[]} */ ([{ path: path ?? "", text: null }]))
  const [old, setOld] = useState(/** @type {Record<string, Node | null>} */ ({}))
  const [reuse, setReuse] = useState(true)
  const [failed, setFailed] = useState("")
  const [busy, setBusy] = useState(false)
  const first = useRef(/** @type {HTMLDivElement | null} */ (null))
  useEffect(() => {
    source.state(run, k, "", 0, 200).then(
      (state) => {
        const found = leaves(state, "").filter((each) => !ENGINE.has(each.split("/")[1] ?? ""))
        setPaths(found.slice(0, 400))
      },
      (error) => setFailed(error.message),
    )
    requestAnimationFrame(() => /** @type {HTMLElement | null} */ (first.current?.querySelector(path ? "textarea" : "input"))?.focus())
  }, [])
  const asked = edits.map((edit) => edit.path).join("\n")
  useEffect(() => {
    const fill = (/** @type {string} */ each, /** @type {Node} */ node) => {
      const text = jsonOf(node)
      if (text !== null && text.length <= EDITABLE) setEdits((all) => all.map((edit) => (edit.path === each && edit.text === null ? { ...edit, text } : edit)))
    }
    for (const { path: each } of edits) {
      if (!each.startsWith("/")) continue
      const known = old[each]
      if (known) fill(each, known)
      if (each in old) continue
      source.state(run, k, each, 0, 200).then(
        (node) => {
          setOld((all) => ({ ...all, [each]: node }))
          fill(each, node)
        },
        () => setOld((all) => ({ ...all, [each]: null })),
      )
    }
  }, [asked])
  const changed = edits.filter((edit) => edit.path && edit.text !== null && !(old[edit.path] && jsonOf(/** @type {Node} */ (old[edit.path])) === JSON.stringify(valueOf(edit.text)))).map((edit) => ({ path: edit.path, value: valueOf(/** @type {string} */ (edit.text)) }))
  const wrong = changed.some((edit) => ENGINE.has(edit.path.split("/")[1] ?? "") || !edit.path.startsWith("/"))
  /** @param {number} place @param {Partial<Edit>} change */
  const put = (place, change) => setEdits(edits.map((edit, i) => (i === place ? { ...edit, ...change } : edit)))
  const start = async () => {
    if (busy || wrong || !source.act) return
    setBusy(true)
    setFailed("")
    try {
      if (!(await mayRun(source, run))) return
      const started = await source.act.fork(run, k, changed, reuse)
      close()
      location.hash = `#/compare/${encodeURIComponent(run)}/${encodeURIComponent(started.run)}`
    } catch (error) {
      setFailed(/** @type {Error} */ (error).message)
    } finally {
      setBusy(false)
    }
  }
  return html`<div class="inner">
      <p class="ink2 prose">A new run starts with the state ${k === 0 ? "with which this run began" : `after step ${k - 1}`}, changed as you say. What happened before is not done again; this run stays as it is.</p>
      <section class="sec" ref=${first}>
        <h3>Change</h3>
        ${edits.map((edit, place) => html`<${EditRow} key=${place} edit=${edit} old=${old[edit.path]} put=${(/** @type {Partial<Edit>} */ change) => put(place, change)} remove=${() => setEdits(edits.filter((_, i) => i !== place))} />`)}
        <datalist id="fork-paths">${paths.map((each) => html`<option value=${each}></option>`)}</datalist>
        <button type="button" class="btn add" onClick=${() => setEdits([...edits, { path: "", text: null }])}>Change ${edits.length ? "another value" : "a value"}</button>
      </section>
      <fieldset class="sec plain"><legend>Recorded effects</legend>
        <label class="row"><input type="radio" name="fork-reuse" checked=${reuse} onChange=${() => setReuse(true)} />Reuse them while the fork asks for the same, then call for real</label>
        <label class="row"><input type="radio" name="fork-reuse" checked=${!reuse} onChange=${() => setReuse(false)} />Call everything for real</label>
      </fieldset>
      <section class="sec"><h3>The same on the command line</h3><${Command} text=${forkCommand(run, k, changed, reuse)} /></section>
      <div role="alert">${failed && html`<p class="problem">${failed}</p>`}</div>
    </div>
    <footer>
      ${allowed && source.act ? html`<button type="button" class="btn main" aria-disabled=${String(busy || wrong)} onClick=${start}>${busy ? "Starting …" : "Fork and run"}</button>` : null}
      <button type="button" class="btn" onClick=${close}>Cancel</button>
      <span class="dim">${allowed && source.act ? "The two runs open side by side." : "This page only shows: run the command in a terminal."}</span>
    </footer>`
}

/** @param {{ edit: Edit, old: Node | null | undefined, put: (change: Partial<Edit>) => void, remove: () => void }} props */
function EditRow({ edit, old, put, remove }) {
  const engine = ENGINE.has(edit.path.split("/")[1] ?? "")
  const was = old ? (jsonOf(old) ?? `${old.kind} of ${old.size}`) : ""
  const now = edit.text === null ? null : JSON.stringify(valueOf(edit.text))
  let note = ""
  if (engine) note = "The engine writes this field; it can't be set."
  else if (edit.path && !edit.path.startsWith("/")) note = "A path starts with a slash, such as /limit or /items/0."
  else if (edit.text !== null && valueOf(edit.text) === edit.text && edit.text !== "") note = "Not JSON: taken as text."
  else if (old === null && edit.path) note = "Nothing stands here yet; the fork adds it."
  return html`<div class="edit">
    <input class="field mono" type="text" list="fork-paths" aria-label="Path" placeholder="/path" spellcheck=${false} autocomplete="off" value=${edit.path} onChange=${(/** @type {any} */ event) => put({ path: event.currentTarget.value.trim(), text: null })} />
    <textarea class="field mono val ${engine ? "bad" : ""}" rows="1" aria-label="New value" spellcheck=${false} dir="auto" value=${edit.text ?? ""} onInput=${(/** @type {any} */ event) => put({ text: event.currentTarget.value })}></textarea>
    <button type="button" class="btn icon" aria-label="Leave this edit out" onClick=${remove}>✕</button>
    <div class="mono was">${was && now !== null && now !== was ? html`<del dir="auto">${cut(was)}</del> <ins dir="auto">${cut(now)}</ins>` : was ? html`<span class="dim" dir="auto">now ${cut(was)}</span>` : ""}${note && html`<p class=${engine ? "problem" : "hint"}>${note}</p>`}</div>
  </div>`
}

/** @param {string} text */
const cut = (text) => (text.length > 160 ? `${text.slice(0, 159)}…` : text)
