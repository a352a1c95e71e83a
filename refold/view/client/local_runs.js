/** The list of the runs inside an exported file: filtered, folded, sorted and counted as the server does (`pages/runs.py`). */

/**
 * @typedef {import("./api.d.ts").RunRow} RunRow
 * @typedef {import("./api.d.ts").RunQuery} RunQuery
 * @typedef {import("./api.d.ts").RunPage} RunPage
 * @typedef {import("./api.d.ts").Totals} Totals
 */

/** @param {RunRow[]} rows @returns {Totals} */
export function totalsOf(rows) {
  const sum = (/** @type {(row: RunRow) => number} */ figure) => rows.reduce((all, row) => all + figure(row), 0)
  return {
    runs: rows.length,
    steps: sum((row) => row.steps),
    seconds: sum((row) => row.seconds ?? 0),
    usage: { tokens_in: sum((row) => row.usage.tokens_in), tokens_out: sum((row) => row.usage.tokens_out), cost: sum((row) => row.usage.known_cost ?? 0) },
    errors: sum((row) => row.errors),
    unknown_cost: rows.filter((row) => row.usage.cost === null).length,
  }
}

const tokens = (/** @type {RunRow} */ row) => row.usage.tokens_in + row.usage.tokens_out

/** @type {Record<string, (row: RunRow) => string | number | null>} */
const SORTS = {
  started: (row) => row.started,
  changed: (row) => row.changed,
  seconds: (row) => row.seconds,
  steps: (row) => row.steps,
  tokens,
  cost: (row) => row.usage.cost,
  status: (row) => row.status,
  task: (row) => row.task.toLowerCase(),
  errors: (row) => row.errors,
}

/** @type {[keyof RunQuery, (row: RunRow) => number | null, 1 | -1][]} */
const RANGES = [
  ["since", (row) => row.started, 1],
  ["until", (row) => row.started, -1],
  ["min_seconds", (row) => row.seconds, 1],
  ["max_seconds", (row) => row.seconds, -1],
  ["min_steps", (row) => row.steps, 1],
  ["max_steps", (row) => row.steps, -1],
  ["min_tokens", tokens, 1],
  ["max_tokens", tokens, -1],
  ["min_cost", (row) => row.usage.cost, 1],
  ["max_cost", (row) => row.usage.cost, -1],
]

/** What one can filter by, and its values in a row. @type {Record<keyof RunPage["facets"], (row: RunRow) => string[]>} */
const FACETS = {
  status: (row) => [row.status],
  reason: (row) => (row.reason ? [row.reason] : []),
  module: (row) => (row.name || row.module ? [row.name || row.module] : []),
  task: (row) => (row.task ? [row.task] : []),
  tag: (row) => row.tags,
}

/** The filters that a run misses; ranges and words are one, whose name is empty. @param {RunQuery} query @returns {(row: RunRow) => string[]} */
function misses(query) {
  const words = (query.q ?? "").toLowerCase().split(/\s+/).filter(Boolean)
  /** @param {RunRow} row */
  const fits = (row) => {
    for (const [name, figure, sign] of RANGES) {
      const bound = query[name]
      if (bound === undefined) continue
      const value = figure(row)
      if (value === null || (value - Number(bound)) * sign < 0) return false
    }
    const text = [row.objective, row.task, row.id, row.module, row.name, row.file.includes(".branches/") ? "" : row.file, row.error, row.question, ...row.tags].join("\n").toLowerCase()
    return words.every((word) => text.includes(word))
  }
  return (row) => [
    ...Object.entries(FACETS).flatMap(([name, values]) => {
      const wanted = query[/** @type {"status"} */ (name)]
      const known = name === "module" ? [...values(row), row.module, row.module.split(":").pop()] : values(row)
      return wanted === undefined || [wanted].flat().some((value) => known.includes(value)) ? [] : [name]
    }),
    ...(fits(row) ? [] : [""]),
  ]
}

/** @param {RunRow[]} rows - all runs @param {RunQuery} query @returns {RunPage} */
export function pageOf(rows, query) {
  const missing = misses(query)
  const known = new Map(rows.map((row) => [row.id, row]))
  /** @param {RunRow} row @returns {RunRow | undefined} */
  const above = (row) => (row.parent?.here ? known.get(row.parent.run) : undefined)
  /** The line that stands for a run: its root, or the one below `under`. @param {RunRow} row @returns {RunRow | null} */
  const line = (row) => {
    const seen = new Set([row])
    for (let at = row; ; ) {
      const parent = above(at)
      if (parent?.id === query.under) return at
      if (!parent || seen.has(parent)) return null
      seen.add((at = parent))
    }
  }
  /** @param {RunRow} row @param {string | undefined} top */
  const isBelow = (row, top) => {
    const seen = new Set()
    for (let at = above(row); at && !seen.has(at); seen.add(at), at = above(at)) if (at.id === top) return true
    return false
  }
  const missed = new Map(rows.map((row) => [row, missing(row)]))
  const fits = rows.filter((row) => !missed.get(row)?.length)
  const lines = query.flat ? (query.under === undefined ? fits : fits.filter((row) => isBelow(row, query.under))) : [...new Set(fits.map(line))].filter((row) => row !== null)
  const counted = query.flat ? lines : rows.filter((row) => lines.some((top) => top === row || isBelow(row, top.id)))
  const by = query.sort ?? "started"
  const figure = /** @type {(row: RunRow) => string | number | null} */ (SORTS[by])
  const down = (query.order ?? (by === "task" || by === "status" ? "asc" : "desc")) === "desc" ? -1 : 1
  const order = (/** @type {any} */ a, /** @type {any} */ b) => (a < b ? -1 : a > b ? 1 : 0)
  const sorted = [
    ...lines.filter((row) => figure(row) !== null).sort((a, b) => down * (order(figure(a), figure(b)) || order(a.id, b.id))),
    ...lines.filter((row) => figure(row) === null).sort((a, b) => order(a.id, b.id)),
  ]
  const root = (/** @type {RunRow} */ row) => {
    let at = row
    for (const seen = new Set([row]); ; seen.add(at)) {
      const parent = above(at)
      if (!parent || seen.has(parent)) return at.id
      at = parent
    }
  }
  /** Whether a run misses no other filter. @param {RunRow} row @param {string} name */
  const counts = (row, name) => /** @type {string[]} */ (missed.get(row)).every((each) => each === name)
  const lineOf = (/** @type {RunRow} */ row) => (query.flat ? row.id : root(row))
  /** @param {keyof RunPage["facets"]} name */
  const facet = (name) => {
    /** @type {Map<string, Set<string>>} */
    const lines = new Map()
    for (const row of rows)
      for (const value of FACETS[name](row)) {
        const ids = lines.get(value) ?? new Set()
        lines.set(value, counts(row, name) ? ids.add(lineOf(row)) : ids)
      }
    return [...lines].map(([value, ids]) => ({ value, count: ids.size })).sort((a, b) => b.count - a.count || order(a.value, b.value)).slice(0, 50)
  }
  const offset = query.offset ?? 0
  return {
    rows: sorted.slice(offset, offset + (query.limit ?? 100)),
    total: sorted.length,
    all: query.flat ? rows.length : rows.filter((row) => !above(row)).length,
    totals: totalsOf(counted),
    any_status: new Set(rows.filter((row) => counts(row, "status")).map(lineOf)).size,
    facets: { status: facet("status"), reason: facet("reason"), module: facet("module"), task: facet("task"), tag: facet("tag") },
    folder: "",
    folders: new Set(rows.filter((row) => !above(row)).map((row) => row.file.replace(/[^/]*$/, ""))).size,
    problem: null,
    indexing: null,
  }
}
