/** A run's answer: an Agent's as its conversation shows it, any other as a value. */

import { html } from "../../vendor/preact.js"
import { NodeValue } from "../../components/node.js"
import { MessageText } from "../conversation/message_text.js"

/** @param {{ node: import("../../api.d.ts").Node, source: import("../../api.d.ts").Source, run: import("../../api.d.ts").Run }} props */
export const Answer = ({ node, source, run }) =>
  run.agent && node.kind === "text" ? html`<${MessageText} source=${source} run=${run.id} node=${node} />` : html`<${NodeValue} node=${node} source=${source} run=${run.id} />`
