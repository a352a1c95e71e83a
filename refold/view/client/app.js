/** The page: the bar, and the view that the address names. */

import { html, render, useCallback, useEffect, useState } from "./vendor/preact.js"
import { KeySheet } from "./components/sheet.js"
import { useKeys } from "./keys.js"
import { remote } from "./remote.js"
import { local } from "./local.js"
import { shortId } from "./format.js"
import { oneLine } from "./text.js"
import { Loading } from "./views/states/say.js"
import { Compare } from "./views/compare/compare.js"
import { Family } from "./views/family/family.js"
import { Run } from "./views/run/run.js"
import { Runs } from "./views/runs/runs.js"
import { States } from "./views/states/states.js"

/** @typedef {import("./api.d.ts").Source} Source */

/** An address: `#/run/ID?k=4`. @returns {{ view: string, names: string[], params: URLSearchParams }} */
function address() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?")
  const [view = "", ...names] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part // a broken escape: the run is not found, and the page says so
    }
  })
  return { view, names, params: new URLSearchParams(query) }
}

/** @param {{ source: Source, home: string }} props - home: the address that is shown where none is named */
function App({ source, home }) {
  const [, setMoved] = useState(0)
  const [sheet, setSheet] = useState(false)
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "light")
  const redraw = useCallback(() => setMoved((n) => n + 1), [])
  useEffect(() => {
    addEventListener("hashchange", redraw)
    return () => removeEventListener("hashchange", redraw)
  }, [])
  const turn = () => {
    const next = theme === "dark" ? "light" : "dark"
    try {
      localStorage.setItem("refold-theme", next)
    } catch {
      // storage is off; the theme lasts as long as the page
    }
    document.documentElement.dataset.theme = next
    setTheme(next)
  }
  useKeys({
    "?": () => setSheet(true),
    d: turn,
    u: () => (location.hash = "#/"),
    "/": () => document.querySelector(/** @type {"input"} */ ("#find"))?.focus(),
  })
  if (!location.hash.replace(/^#\/?/, "") && home) history.replaceState(null, "", home)
  const { view, names, params } = address()
  /** @param {Record<string, string | null>} changes @param {boolean} [replace] */
  const setParams = (changes, replace = true) => {
    const next = new URLSearchParams(address().params)
    for (const [name, value] of Object.entries(changes)) value === null ? next.delete(name) : next.set(name, value)
    const to = `${location.hash.split("?")[0] || "#/"}${next.size ? `?${next}` : ""}`
    if (replace) history.replaceState(null, "", to)
    else history.pushState(null, "", to)
    redraw()
  }
  const shared = { source, params, setParams, theme }
  const [name = "", other = ""] = names
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); document.querySelector(/** @type {"main"} */ ("main"))?.focus() }}>Skip to the content</a>
    <header class="bar">
      <a class="brand" href="#/">refold</a>
      <nav class="crumbs grow" aria-label="Where this is"><${Crumbs} view=${view} names=${names} live=${source.live} /></nav>
      <button type="button" class="btn" onClick=${() => setSheet(true)}>Keys <kbd>?</kbd></button>
      <button type="button" class="btn icon" aria-label=${theme === "dark" ? "Light theme" : "Dark theme"} onClick=${turn}>◐</button>
    </header>
    <main id="main" tabindex="-1">
      ${view === "run" ? html`<${Run} key=${name} id=${name} ...${shared} />` : view === "compare" ? html`<${Compare} key=${`${name}/${other}`} a=${name} b=${other} ...${shared} />` : view === "family" ? html`<${Family} key=${name} run=${name} ...${shared} />` : view === "states" ? html`<${States} />` : html`<${Runs} ...${shared} />`}
    </main>
    ${sheet && html`<${KeySheet} close=${() => setSheet(false)} />`}`
}

/** @param {{ view: string, names: string[], live: boolean }} props */
function Crumbs({ view, names, live }) {
  const words = /** @type {Record<string, string>} */ ({ compare: "Compare", family: "Family", states: "States of the page" })
  if (!view) return html`<span>Runs</span>`
  /** @param {string} id */
  const run = (id) => html`<a class="mono cut" href=${`#/run/${encodeURIComponent(id)}`} title=${oneLine(id)}>${shortId(oneLine(id))}</a>`
  return html`${live && html`<a href="#/">Runs</a><span aria-hidden="true">/</span>`}${words[view] ? html`<span>${words[view]}</span><span aria-hidden="true">/</span>` : ""}${names.filter(Boolean).map((id, i) => html`${i ? html`<span aria-hidden="true">and</span>` : ""}${run(id)}`)}`
}

/** Begin: with the runs inside the file, if there are any, otherwise with the server's. */
async function begin() {
  const place = /** @type {HTMLElement} */ (document.querySelector("#app"))
  const inside = document.querySelector("#refold-runs")
  if (!inside) return render(html`<${App} source=${remote} home="" />`, place)
  render(html`<${Loading} text="Unpacking the run" />`, place)
  const { source, home } = await local(inside.textContent ?? "")
  render(html`<${App} source=${source} home=${home} />`, place)
}

void begin()
