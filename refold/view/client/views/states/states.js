/** All states in which something is not there, side by side: to be looked at, and to be tested. */

import { html } from "../../vendor/preact.js"
import { Glyph } from "../../components/glyph.js"
import { Command } from "../act/copy.js"
import { Loading, Say } from "./say.js"

/** @param {{ title: string, children?: any }} props */
const Frame = ({ title, children }) => html`<section class="frame"><h2>${title}</h2><div>${children}</div></section>`

export function States() {
  return html`<div class="page"><h1 class="sr">States of the page</h1><div class="frames">
    <${Frame} title="No runs yet"><${Say} inner title="No runs in this folder yet" text="A run shows here as soon as it writes its first record." command="refold run tasks/examples/game_of_24.yaml" /><//>
    <${Frame} title="Loading a run, after 300 ms"><${Loading} text="Reading the index of 74,812 steps" now=${true} /><//>
    <${Frame} title="A corrupt trace"><${Say} inner title="Line 214 is not what was written" text="Its hash does not fit. The 212 records before it are whole; the run can be shown up to step 52."><p><button type="button" class="btn main">Show steps 0 to 52</button></p><p class="dim">If only the last line is torn, this cuts it off:</p><${Command} text="refold trace repair RUN" /><//><//>
    <${Frame} title="A trace of another format"><${Say} inner title="Written in format 3" text="This refold reads formats 1 and 2. A newer one shows the run." command="pip install --upgrade refold" /><//>
    <${Frame} title="Live"><div class="notice live"><${Glyph} name="running" /><span class="grow">The run goes on: step 1,204, fetch</span><button type="button" class="btn line">38 new steps ↓</button></div><${Say} inner title="Not following the end" text="You scrolled away, so the page stays where you are. End follows again." /><//>
    <${Frame} title="The server is gone"><div class="notice wait" role="status"><${Glyph} name="wait" /><span class="grow">No answer from the server. Trying again in 4 s.</span><button type="button" class="btn line">Now</button></div><${Say} inner title="What was read stays here" text="The page continues from the last record that it has; nothing is lost." /><//>
    <${Frame} title="Nothing found"><${Say} inner title="Nothing in this run says “tiemout”" text="Searched in decisions, arguments, results and states of 2,000 steps."><button type="button" class="btn line">Clear the search</button><//><//>
    <${Frame} title="Acting is off"><${Say} inner title="This page only shows" text="Answering and forking run the module's code. To allow it, start the viewer with the module that you trust." command="refold view runs --allow-actions refold.modules.examples.approval:PayInvoices" /><//>
    <${Frame} title="A relative is missing"><${Say} inner title="The source of this fork is not here" text="check-links-1m81x… was not found beside this trace, so the states cannot be compared. The fork itself is whole." /><//>
  </div></div>`
}
