/** A command for what this page does not do itself, and how to let it. */

import { html } from "../../vendor/preact.js"
import { visible } from "../../text.js"
import { Command } from "./copy.js"

/**
 * @typedef {import("../../api.d.ts").Source} Source
 * @typedef {{ id: string, path: string | null, actions_allowed: boolean, why_not: string | null }} Named - a run, as far as its command needs it
 */

/** Whether this page does what it is asked, and does not only show. @param {Source} source @param {Named} run */
export const mayAct = (source, run) => run.actions_allowed && source.act !== undefined

/** Why this page only shows, and what to do about it. @param {{ run: Named }} props */
export function WhyNot({ run }) {
  if (run.actions_allowed) return html`<p class="ink2">This tab has no token, so it only shows. Open the whole address that <code>refold view</code> has printed to act from the page.</p>`
  return html`<p class="ink2">${(run.why_not ?? "").split(/(--[a-z-]+ \w+)/).map((part, i) => (i % 2 ? html`<code class="nowrap">${part}</code>` : visible(part)))}</p>`
}

/** @param {{ source: Source, run: Named, text: string }} props */
export const Elsewhere = ({ source, run, text }) => html`<${Command} text=${text} /><${WhyNot} run=${run} />`
