/** A run: one line, and a cursor on it that everything follows. */

import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js"
import { useNarrow } from "../../components/narrow.js"
import { Status } from "../../components/status.js"
import { ago, cost, count, plural, seconds, shortCount } from "../../format.js"
import { say, useKeys } from "../../keys.js"
import { oneLine, visible } from "../../text.js"
import { Ask } from "../act/ask.js"
import { openFork } from "../act/fork.js"
import { Actions } from "../act/verify.js"
import { Conversation } from "../conversation/conversation.js"
import { Loading, Problem } from "../states/say.js"
import { Budgets } from "./budgets.js"
import { useAnswer, useRun, useStepRows } from "./data.js"
import { Find } from "./find.js"
import { StatePane } from "./state.js"
import { StepPanel } from "./step.js"
import { Steps } from "./steps.js"
import { Summary } from "./summary.js"
import { FEW, Timeline } from "./timeline.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {import("../../api.d.ts").Run} RunInfo
 */

/** Steps in the window at first. */
const SPAN = 160
const SPAN_NARROW = 56
const COLUMNS = 700

/** Where a run is opened: at the question, the failing step, the end, or its summary. @param {RunInfo} run @param {number} size */
function opening(run, size) {
  if (run.status === "waiting" || run.status === "running") return size - 1
  if (run.status === "failed" && run.failing.length) return /** @type {number} */ (run.failing[run.failing.length - 1])
  return -1
}

/**
 * @param {object} props
 * @param {Source} props.source @param {string} props.id @param {URLSearchParams} props.params
 * @param {(changes: Record<string, string | null>, replace?: boolean) => void} props.setParams
 * @param {string} props.theme
 */
export function Run({ source, id, params, setParams, theme }) {
  const { run, error, refresh } = useRun(source, id)
  useEffect(() => {
    document.title = run ? `${oneLine(run.objective || run.task || run.id)} · refold` : "refold"
  }, [run?.objective])
  if (error && !run) return html`<div class="page"><${Problem} error=${error} /></div>`
  if (!run) return html`<div class="page"><${Loading} text="Reading the run" /></div>`
  return html`<${Opened} source=${source} run=${run} params=${params} setParams=${setParams} theme=${theme} refresh=${refresh} gone=${error !== null} />`
}

/**
 * @param {object} props
 * @param {Source} props.source @param {RunInfo} props.run @param {URLSearchParams} props.params
 * @param {(changes: Record<string, string | null>, replace?: boolean) => void} props.setParams
 * @param {string} props.theme @param {() => void} props.refresh @param {boolean} props.gone
 */
function Opened({ source, run, params, setParams, theme, refresh, gone }) {
  const narrow = useNarrow()
  const size = run.steps + (run.open !== null ? 1 : 0)
  const given = params.get("k")
  const [follows, setFollows] = useState(given === null && run.status === "running")
  const first = useMemo(() => opening(run, size), [])
  const asked = given === null ? first : given === "s" ? -1 : Number.parseInt(given, 10)
  const k = follows ? size - 1 : Math.max(-1, Math.min(size - 1, Number.isFinite(asked) ? asked : first))
  const path = params.get("path")
  const all = params.get("state") === "all"
  const chat = run.agent && params.get("show") !== "step"
  const tab = params.get("tab") ?? "step"
  const [window, setWindow] = useState(/** @type {[number, number]} */ ([0, Math.min(size, SPAN)]))
  const move = useRef(/** @type {((way: 1 | -1) => void) | null} */ (null))

  const span = Math.min(size, Math.max(1, window[1] - window[0]))
  const centred = Math.max(0, Math.min(size - span, k < 0 ? window[0] : k - Math.floor(span / 2)))
  const seen = k < 0 || (k >= window[0] && k < window[1])
  const range = /** @type {[number, number]} */ (size <= FEW ? [0, size] : seen ? [Math.min(window[0], size - span), Math.min(size, Math.max(window[1], span))] : [centred, centred + span])
  useEffect(() => {
    if (!seen) setWindow(range)
  }, [k])
  useEffect(() => {
    const wide = narrow ? SPAN_NARROW : SPAN
    const start = Math.max(0, Math.min(size - wide, (k < 0 ? 0 : k) - Math.floor(wide / 2)))
    setWindow([start, Math.min(size, start + wide)])
  }, [run.id, narrow])
  useEffect(() => {
    if (size <= SPAN && window[1] < size) setWindow([0, size])
  }, [size])

  /** @param {number} to @param {{ path?: string | null }} [also] */
  const go = (to, also = {}) => {
    const next = Math.max(-1, Math.min(size - 1, to))
    setFollows(run.status === "running" && next === size - 1)
    setParams({ k: next < 0 ? "s" : String(next), ...also })
    say(next < 0 ? "Summary" : `Step ${next}`)
  }
  const pick = (/** @type {string | null} */ value) => setParams({ path: value })
  const rows = useStepRows(source, run.id, size, run.version)
  const whole = useAnswer(() => source.columns(run.id, 0, size, COLUMNS), [source, run.id, run.version]).value
  const part = useAnswer(() => source.columns(run.id, range[0], range[1], COLUMNS), [source, run.id, range[0], range[1], run.version]).value
  const step = useAnswer(async () => (k >= 0 ? source.step(run.id, k) : null), [source, run.id, k, k >= run.steps ? run.version : ""])
  const history = useAnswer(async () => (path === null ? null : source.history(run.id, path, 0)), [source, run.id, path, run.version]).value
  const shownHistory = history?.path === path ? history : null
  const ticks = shownHistory?.steps ?? []

  /** @param {string} mode @param {boolean} back */
  const seek = async (mode, back) => {
    const found = await source.find(run.id, back ? k - 1 : k + 1, mode, back)
    if (found !== null) go(found)
  }
  /** @param {number} by */
  const zoom = (by) => {
    const wide = Math.round(Math.max(10, Math.min(size, span * by)))
    const middle = k < 0 ? (range[0] + range[1]) / 2 : k
    const start = Math.max(0, Math.min(size - wide, Math.round(middle - wide / 2)))
    setWindow([start, start + wide])
  }
  const allowed = run.actions_allowed && Boolean(source.act)
  const fork = () => openFork({ source, run: run.id, k: k < 0 ? run.steps : Math.min(k, run.steps), path, allowed })
  useKeys({
    j: () => go(k + 1),
    k: () => go(k - 1),
    ArrowRight: () => go(k + 1),
    ArrowLeft: () => go(k - 1),
    J: () => go(k + 10),
    K: () => go(k - 10),
    PageDown: () => go(k + 10),
    PageUp: () => go(k - 10),
    Home: () => go(0),
    End: () => go(size - 1),
    s: () => go(-1),
    e: () => void seek("E", false),
    E: () => void seek("E", true),
    n: () => move.current?.(1),
    p: () => move.current?.(-1),
    "]": () => go(ticks.find((each) => each > k) ?? k),
    "[": () => go(ticks.findLast((each) => each < k) ?? k),
    c: () => run.agent && setParams({ show: chat ? "step" : null }),
    t: () => setParams({ state: all ? null : "all" }),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: () => zoom(size / span),
    f: fork,
    a: () => /** @type {HTMLElement | null} */ (document.querySelector(".ask input, .ask textarea, .ask select, .ask button"))?.focus(),
    g: () => document.querySelector(/** @type {"input"} */ ("#go-to"))?.focus(),
    Escape: () => path !== null && pick(null),
  })
  const question = run.requests.length > 0 && (k < 0 || k >= run.steps - 1 || k >= size - 1)
  const shown = step.value?.k === k ? step.value : null
  const relatives = run.children > 0 || run.parent !== null
  return html`<div class="run">
    <div class="head"><div class="grow">
        <div class="row" style="flex-wrap:wrap;gap:2px 12px"><h1 dir="auto">${visible(run.objective || run.task || run.id)}</h1><${Status} row=${run} />${gone && html`<span class="err">no answer from the server; trying again</span>`}</div>
        <p class="facts"><span>${visible((run.module.split(":")[1] ?? run.module) || "no module")}</span><span>${ago(run.started)}</span>${run.seconds !== null && html`<span><b>${seconds(run.seconds)}</b></span>`}${run.usage.tokens_in + run.usage.tokens_out > 0 && html`<span><b>${shortCount(run.usage.tokens_in + run.usage.tokens_out)}</b> tokens</span>`}${cost(run.usage.cost) && html`<span><b>${cost(run.usage.cost)}</b></span>`}<span><b>${count(run.counts.actions)}</b> ${run.counts.actions === 1 ? "action" : "actions"}</span></p>
        <div class="run-acts">
          <button type="button" class="btn" onClick=${fork}>Fork from here <kbd class="wide">f</kbd></button>
          ${run.parent?.here && html`<a class="btn" href=${`#/compare/${encodeURIComponent(run.parent.run)}/${encodeURIComponent(run.id)}`}>Compare with its ${run.parent.kind === "fork" ? "source" : "parent"}</a>`}
          ${relatives && html`<a class="btn" href=${`#/family/${encodeURIComponent(run.id)}`}>Family</a>`}
          <${Actions} source=${source} run=${run.id} allowed=${allowed} resumable=${["stopped", "failed", "cancelled", "interrupted"].includes(run.status)} go=${go} />
        </div>
      </div>
      <${Budgets} run=${run} columns=${whole} k=${k} />
      <${Find} source=${source} run=${run.id} move=${move} go=${(/** @type {import("../../api.d.ts").Hit} */ hit) => go(hit.k, hit.where === "state" ? { path: hit.path } : {})} />
    </div>
    <${Timeline} size=${size} k=${k} range=${range} whole=${whole} part=${part} ticks=${ticks} row=${k >= 0 ? rows.row(k) : null} theme=${theme} go=${go} show=${(/** @type {number} */ from, /** @type {number} */ to) => setWindow([from, to])} />
    ${narrow && html`<div class="tabs seg" role="group" aria-label="Parts">${["step", "state", "steps"].map((name) => html`<button type="button" aria-pressed=${String(tab === name)} onClick=${() => setParams({ tab: name })}>${name === "step" ? (chat ? "Conversation" : "Step") : name === "state" ? "State" : "Steps"}</button>`)}</div>`}
    <div class="panes">
      <${Steps} size=${size} k=${k} errors=${run.errors} rows=${rows} go=${(/** @type {number} */ to) => { go(to); if (narrow) setParams({ tab: "step" }) }} nextError=${() => seek("E", false)} on=${!narrow || tab === "steps"} />
      <section class="pane ${!narrow || tab === "step" ? "on" : ""}" aria-label=${chat ? "Conversation" : "Step"}>
        <header>${run.agent ? html`<span class="seg" role="group" aria-label="What is shown"><button type="button" aria-pressed=${String(chat)} onClick=${() => setParams({ show: null })}>Conversation</button><button type="button" aria-pressed=${String(!chat)} onClick=${() => setParams({ show: "step" })}>${k < 0 ? "Summary" : `Step ${count(k)}`}</button></span>` : html`<h2>${k < 0 ? "Summary" : html`Step <span class="mono">${count(k)}</span>`}</h2>`}
          <span class="grow"></span><label class="row wide"><span class="dim">go to</span><input id="go-to" class="field" style="width:76px" inputmode="numeric" aria-label="Go to a step" onKeyDown=${(/** @type {KeyboardEvent} */ event) => { const field = /** @type {HTMLInputElement} */ (event.target); if (event.key === "Enter" && /^\d+$/.test(field.value.trim())) { go(Number(field.value)); field.value = ""; field.blur() } }} /></label>
          <button type="button" class="btn icon wide" aria-label="Previous step" disabled=${k < 0} onClick=${() => go(k - 1)}>‹</button><button type="button" class="btn icon wide" aria-label="Next step" disabled=${k >= size - 1} onClick=${() => go(k + 1)}>›</button></header>
        <div class="body" tabindex="-1">
          ${run.status === "running" && html`<div class="notice live"><span class="grow">${follows ? "Following the run as it goes on." : `The run goes on: ${plural(size, "step")} so far.`}</span>${!follows && html`<button type="button" class="btn line" onClick=${() => go(size - 1)}>To the end</button>`}</div>`}
          ${run.problem && html`<p class="notice bad">${visible(run.problem)}</p>`}
          ${question && html`<div class="pad">${run.requests.map((request) => html`<${Ask} key=${request.id} source=${source} run=${run.id} request=${request} allowed=${allowed} answered=${refresh} />`)}</div>`}
          ${chat ? html`<div class="pad"><${Conversation} source=${source} run=${run.id} k=${k} go=${go} version=${run.version} /></div>` : k < 0 ? html`<${Summary} run=${run} source=${source} rows=${rows} go=${go} pick=${pick} />` : step.error ? html`<p class="notice bad">${step.error.message}</p>` : shown ? html`<${StepPanel} run=${run} step=${shown} source=${source} />` : ""}
        </div>
      </section>
      <${StatePane} source=${source} run=${run.id} k=${k} steps=${run.steps} all=${all} path=${path} history=${shownHistory} version=${run.version} go=${go} pick=${pick} setAll=${(/** @type {boolean} */ on) => setParams({ state: on ? "all" : null })} on=${!narrow || tab === "state"} />
    </div>
    ${narrow && html`<div class="thumb"><button type="button" class="btn" aria-label="Previous step" onClick=${() => go(k - 1)}>‹</button><input type="range" min="0" max=${Math.max(0, size - 1)} value=${Math.max(0, k)} aria-label="Step" onInput=${(/** @type {Event} */ event) => go(Number(/** @type {HTMLInputElement} */ (event.target).value))} /><button type="button" class="btn" aria-label="Next step" onClick=${() => go(k + 1)}>›</button></div>`}
  </div>`
}
