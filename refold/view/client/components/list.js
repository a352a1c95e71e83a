/** A list of rows of one height, of which only those in sight are drawn. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js"

const SPARE = 10

/**
 * @param {object} props
 * @param {number} props.size - how many rows there are
 * @param {number} props.height - of a row, in px
 * @param {number} [props.shown] - the row to be kept in sight when it changes
 * @param {(from: number, to: number) => any} props.rows - draws a stretch, `to` excluded
 * @param {string} props.label
 */
export function VirtualList({ size, height, shown, rows, label }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null))
  const [sight, setSight] = useState(/** @type {[number, number]} */ ([0, 60]))
  const look = () => {
    const at = box.current
    if (!at) return
    const from = Math.max(0, Math.floor(at.scrollTop / height) - SPARE)
    const to = Math.min(size, Math.ceil((at.scrollTop + at.clientHeight) / height) + SPARE)
    setSight((old) => (old[0] === from && old[1] === to ? old : [from, to]))
  }
  useLayoutEffect(() => {
    const at = box.current
    if (at && shown !== undefined && shown >= 0) {
      const top = shown * height
      if (top < at.scrollTop) at.scrollTop = top - Math.min(top, at.clientHeight / 3)
      else if (top + height > at.scrollTop + at.clientHeight) at.scrollTop = top - at.clientHeight * 0.66
    }
    look()
  }, [shown, size])
  useEffect(() => {
    const watch = new ResizeObserver(look)
    if (box.current) watch.observe(box.current)
    return () => watch.disconnect()
  }, [size])
  const [from, to] = sight
  return html`<div class="body list" ref=${box} onScroll=${look}>
    <div role="list" aria-label=${label} style="height:${size * height}px;position:relative">${rows(Math.min(from, size), Math.min(to, size))}</div>
  </div>`
}
