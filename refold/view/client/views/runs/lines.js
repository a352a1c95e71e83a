/**
 * The lines of the list of runs: pages of rows as far as they are loaded, and the families that are unfolded below them.
 *
 * @typedef {import("../../api.d.ts").RunRow} RunRow
 * @typedef {import("../../api.d.ts").RunPage} RunPage
 * @typedef {import("../../api.d.ts").FamilyNode} FamilyNode
 * @typedef {object} Line
 * @property {string} key - the run's id, or the place of a row that is not loaded
 * @property {RunRow | null} row - null: not loaded, or its trace is not here
 * @property {FamilyNode | null} node - of a line inside a family
 * @property {number} depth
 * @property {boolean[]} rails - for each depth above: whether the line above goes on below this one
 * @property {number} children
 * @property {boolean} open
 * @property {number} top - px
 * @property {number} height - px
 */

export const PAGE = 100
/** px of a run and of a run inside a family. */
export const HEIGHTS = { wide: [44, 32], narrow: [78, 58] }

/** @param {RunRow} a @param {RunRow} b */
const order = (a, b) => (a.parent?.step ?? 0) - (b.parent?.step ?? 0) || (a.parent?.candidate ?? -1) - (b.parent?.candidate ?? -1)

export class Lines {
  constructor() {
    this.total = 0
    /** @type {Map<number, RunRow>} by its place in the list */
    this.rows = new Map()
    /** @type {Map<string, FamilyNode[]>} the children of a run */
    this.below = new Map()
    /** @type {Set<string>} */
    this.open = new Set()
  }

  /** Take in a page. @param {number} offset @param {RunPage} page */
  take(offset, page) {
    this.total = page.total
    page.rows.forEach((row, i) => this.rows.set(offset + i, row))
    for (const place of this.rows.keys()) if (place >= this.total) this.rows.delete(place)
  }

  /** Take in a family: who is below whom. @param {FamilyNode[]} nodes */
  takeFamily(nodes) {
    /** @type {Map<string, FamilyNode[]>} */
    const below = new Map()
    for (const node of nodes) {
      if (node.parent === null) continue
      const siblings = below.get(node.parent) ?? []
      siblings.push(node)
      below.set(node.parent, siblings)
    }
    for (const [run, siblings] of below) {
      siblings.sort((a, b) => (a.row && b.row ? order(a.row, b.row) : a.step - b.step))
      this.below.set(run, siblings)
    }
  }

  /** Put newer rows in the place of older ones. @param {RunRow[]} rows @returns {boolean} whether all of them were there, with the same status */
  update(rows) {
    const newer = new Map(rows.map((row) => [row.id, row]))
    const same = new Set()
    const moved = new Set()
    const take = (/** @type {RunRow | null} */ old, /** @type {RunRow} */ newer) => (old?.status === newer.status ? same : moved).add(newer.id)
    for (const [place, row] of this.rows) {
      const newRow = newer.get(row.id)
      if (newRow) this.rows.set(place, newRow), take(row, newRow)
    }
    for (const siblings of this.below.values())
      for (const node of siblings) {
        const newRow = newer.get(node.run)
        if (newRow) take(node.row, newRow), (node.row = newRow)
      }
    return !moved.size && same.size === newer.size
  }

  /** The places of pages that have to be asked for, so that all lines from one place to another are there. @param {number} from @param {number} to */
  missing(from, to) {
    const pages = []
    for (let page = Math.floor(Math.max(0, from) / PAGE); page * PAGE < Math.min(to, this.total); page++)
      for (let place = page * PAGE; place < Math.min((page + 1) * PAGE, this.total); place++)
        if (!this.rows.has(place)) {
          pages.push(page * PAGE)
          break
        }
    return pages
  }

  /** All lines, with their places on the page. @param {boolean} narrow @returns {Line[]} */
  all(narrow) {
    const [tall, low] = narrow ? HEIGHTS.narrow : HEIGHTS.wide
    /** @type {Line[]} */
    const lines = []
    let top = 0
    /** @param {RunRow | null} row @param {FamilyNode | null} node @param {boolean[]} rails @param {string} key */
    const add = (row, node, rails, key) => {
      const depth = rails.length
      const below = row ? this.below.get(row.id) : undefined
      const open = row !== null && this.open.has(row.id)
      const height = /** @type {number} */ (depth ? low : tall)
      lines.push({ key, row, node, depth, rails, children: row?.children ?? 0, open, top, height })
      top += height
      if (open && below) below.forEach((child, i) => add(child.row, child, [...rails, i < below.length - 1], child.run))
    }
    for (let place = 0; place < this.total; place++) {
      const row = this.rows.get(place) ?? null
      add(row, null, [], row?.id ?? `#${place}`)
    }
    return lines
  }

  /** The place of a line's run in the whole list, which is what pages are counted by. @param {Line[]} lines @param {number} index */
  placeOf(lines, index) {
    let place = -1
    for (let i = 0; i <= index && i < lines.length; i++) if (lines[i]?.depth === 0) place++
    return place
  }
}

/** The first line that ends below a height. @param {Line[]} lines @param {number} y */
export function lineAt(lines, y) {
  let low = 0
  let high = lines.length
  while (low < high) {
    const mid = (low + high) >> 1
    const line = /** @type {Line} */ (lines[mid])
    if (line.top + line.height <= y) low = mid + 1
    else high = mid
  }
  return low
}
