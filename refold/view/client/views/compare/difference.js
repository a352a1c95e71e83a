/**
 * What differs in two steps, value by value.
 *
 * @typedef {import("../../api.d.ts").Step} Step
 * @typedef {import("../../api.d.ts").Node} Node
 * @typedef {import("../../api.d.ts").Change} Change
 * @typedef {{ path: string, a: Node | null, b: Node | null }} Row
 */

const MOST = 200

/** @param {string} value @returns {Node} */
const text = (value) => ({ kind: "text", value, size: value.length })
/** @param {string | null | undefined} value */
const maybe = (value) => (value === null || value === undefined ? null : text(value))

/** The rows of a table: what is the same is left out. @param {Step | null} a @param {Step | null} b @returns {Row[]} */
export function stepDifferences(a, b) {
  if (!a || !b) return []
  /** @type {Row[]} */
  const rows = []
  const put = (/** @type {string} */ path, /** @type {Node | null} */ x, /** @type {Node | null} */ y) => void walk(x, y, path, rows)
  const [x, y] = [a.decision, b.decision]
  put("decision/mode", maybe(x?.mode), maybe(y?.mode))
  put("decision/rationale", maybe(x?.rationale), maybe(y?.rationale))
  put("decision/prompt", maybe(x?.prompt), maybe(y?.prompt))
  put("decision/answer", x?.answer ?? null, y?.answer ?? null)
  for (let i = 0; i < Math.max(a.calls.length, b.calls.length) && rows.length < MOST; i++) {
    const [p, q] = [a.calls[i], b.calls[i]]
    put(`actions/${i}/name`, maybe(p?.name), maybe(q?.name))
    if (p && q) put(`actions/${i}/args`, p.args, q.args)
    put(`results/${i}/output`, p?.output ?? null, q?.output ?? null)
    put(`results/${i}/error`, maybe(p?.error && `${p.error.type}: ${p.error.message}`), maybe(q?.error && `${q.error.type}: ${q.error.message}`))
  }
  put("value", a.value, b.value)
  return rows.slice(0, MOST)
}

/** @param {Node | null} a @param {Node | null} b @param {string} path @param {Row[]} rows */
function walk(a, b, path, rows) {
  if (!a && !b) return
  const container = a && b && a.kind === b.kind && (a.kind === "object" || a.kind === "array")
  if (!container) {
    if (!a || !b || a.kind !== b.kind || a.value !== b.value || a.size !== b.size || a.raw !== b.raw) rows.push({ path, a, b })
    return
  }
  const keys = new Set([...(a.children ?? []), ...(b.children ?? [])].map((child) => child.key))
  const [left, right] = [a, b].map((node) => new Map((node.children ?? []).map((child) => [child.key, child])))
  for (const key of keys) walk(left?.get(key) ?? null, right?.get(key) ?? null, `${path}/${key}`, rows)
}

/** The changes of a state as rows: a's value beside b's. @param {Change | null} change @returns {Row[]} */
export function stateRows(change) {
  if (!change) return []
  if (change.change !== "in") return [{ path: change.path, a: change.old ?? null, b: change.new ?? null }]
  return (change.children ?? []).flatMap((child) => ("unchanged" in child ? [] : stateRows(child)))
}
