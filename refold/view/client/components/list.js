/** A list of rows of one height, of which only those in sight are drawn. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js"

const SPARE = 10
/** px that are taken for the list's height until it is laid out. */
const AT_FIRST = 600

/**
 * Where the list is scrolled to is kept here and not asked of the browser, which would lay out the page for each answer:
 * rows that come into sight are drawn together with the cursor that brought them there.
 *
 * @param {object} props
 * @param {number} props.size - how many rows there are
 * @param {number} props.height - of a row, in px
 * @param {number} [props.selected] - the row to be kept in sight when it changes
 * @param {(from: number, to: number) => any} props.rows - draws a stretch, `to` excluded
 * @param {string} props.label
 */
export function VirtualList({ size, height, selected, rows, label }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null))
  const sight = useRef({ top: 0, height: AT_FIRST })
  const [, setSeen] = useState("")
  const was = useRef(/** @type {number | undefined} */ (undefined))
  const at = sight.current
  if (was.current !== selected) {
    was.current = selected
    if (selected !== undefined && selected >= 0) {
      const top = selected * height
      if (top < at.top) at.top = top - Math.min(top, at.height / 3)
      else if (top + height > at.top + at.height) at.top = top - at.height * 0.66
    }
  }
  at.top = Math.max(0, Math.min(at.top, size * height - at.height))
  const from = Math.min(size, Math.max(0, Math.floor(at.top / height) - SPARE))
  const to = Math.min(size, Math.ceil((at.top + at.height) / height) + SPARE)
  /** Where the browser has it; -1: a list that is not laid out is nowhere. */
  const set = useRef(-1)
  useLayoutEffect(() => {
    if (box.current && set.current !== at.top) box.current.scrollTop = set.current = at.top
  })
  /** Drawn anew if other rows are in sight. */
  const look = () => setSeen(`${Math.floor(at.top / height)} ${Math.ceil((at.top + at.height) / height)}`)
  const onScroll = () => {
    at.top = set.current = /** @type {HTMLDivElement} */ (box.current).scrollTop
    look()
  }
  useEffect(() => {
    let isLaidOut = false
    const watch = new ResizeObserver(([entry]) => {
      const tall = /** @type {ResizeObserverEntry} */ (entry).contentRect.height
      if (!tall) return void (set.current = -1)
      if (!isLaidOut) was.current = undefined // the row that is shown may be beyond the real height
      isLaidOut = true
      at.height = tall
      if (box.current && set.current !== at.top) box.current.scrollTop = set.current = at.top
      look()
    })
    if (box.current) watch.observe(box.current)
    return () => watch.disconnect()
  }, [])
  return html`<div class="body list" ref=${box} onScroll=${onScroll}>
    <div role="list" aria-label=${label} style="height:${size * height}px;position:relative">${rows(from, to)}</div>
  </div>`
}
