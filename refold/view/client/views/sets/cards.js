/** Cards above the list of runs: as many as leave the list in sight, the others behind a button. */

import { html, useState } from "../../vendor/preact.js"
import { plural } from "../../format.js"
import { useNarrow } from "../../components/narrow.js"

/** How many are shown: a row of them, and on a phone one. */
const SHOWN = { wide: 3, narrow: 1 }

/** @param {{ noun: string, cards: any[] }} props - noun: what a card shows, in the singular */
export function Cards({ noun, cards }) {
  const most = useNarrow() ? SHOWN.narrow : SHOWN.wide
  const [all, setAll] = useState(false)
  const hidden = cards.length - most
  return html`<div class="sets">
    ${all ? cards : cards.slice(0, most)}
    ${hidden > 0 && html`<button type="button" class="btn more" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>${all ? "Show fewer" : `Show ${plural(hidden, `more ${noun}`)}`}</button>`}
  </div>`
}
