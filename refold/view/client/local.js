/**
 * The source inside an exported file: gzipped JSON lines in base64 (`refold/view/packed.py` says which).
 *
 * The lines hold the server's own answers for each step. States, histories, searches and columns are computed here.
 */

import { looked, MEMBERS, nodeOf, States, tokensOf, isContainer } from "./fold.js"
import { ProblemError } from "./remote.js"

/**
 * @typedef {import("./api.d.ts").Source} Source
 * @typedef {import("./api.d.ts").Json} Json
 * @typedef {import("./api.d.ts").Hit} Hit
 * @typedef {import("./fold.js").Operation} Operation
 * @typedef {{ row: any, mode: string, step: any, changes: any, turns: any[], patch: Operation[] }} StepLine
 * @typedef {{ run: any, root: string, steps: StepLine[], values: Record<string, string>, states: States | null, beginning: any[], first: Json, end: Operation[] }} Held
 */

const RARE = ["E", "W", "B", "F", "."]
const SLICE_MS = 100
const HITS = 50
const AROUND = 40

/** @param {string} packed @returns {Promise<string>} */
async function unpacked(packed) {
  const text = atob(packed.trim())
  const data = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) data[i] = text.charCodeAt(i)
  return new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"))).text()
}

/** Integers that a number cannot hold come as BigInt; see `packed.py`. @param {string} _ @param {any} value */
function revived(_, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value
  if ("$integer" in value && typeof value.$integer === "string" && Object.keys(value).length === 1) return BigInt(value.$integer)
  if (Array.isArray(value.$object) && Object.keys(value).length === 1) return { [value.$object[0]]: value.$object[1] }
  return value
}

/** JSON, with such integers. @param {any} value @param {number} [space] */
const jsonOf = (value, space) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? (/** @type {any} */ (JSON).rawJSON?.(String(each)) ?? String(each)) : each), space)

/** @param {string} message @returns {never} */
function missing(message) {
  throw new ProblemError("not_found", message, "It is not in this file.")
}

/** @param {string} packed @returns {Promise<{ source: Source, home: string }>} */
export async function local(packed) {
  /** @type {any} */
  let head = null
  /** @type {Map<string, Held>} */
  const runs = new Map()
  /** @type {Held | null} */
  let held = null
  for (const line of (await unpacked(packed)).split("\n")) {
    if (!line) continue
    const each = JSON.parse(line, revived)
    if (each.kind === "runs") head = each
    else if (each.kind === "run") {
      held = { run: each.run, root: each.root, steps: [], values: {}, states: null, beginning: each.beginning, first: each.first, end: each.end }
      runs.set(each.run.id, held)
    } else if (held && each.kind === "step") held.steps.push(each)
    else if (held && each.kind === "values") held.values = each.values
  }
  /** @param {string} id @returns {Held} */
  const of = (id) => runs.get(id) ?? missing(`There is no run ${id}.`)
  /** @param {string} id @returns {States} */
  const states = (id) => {
    const run = of(id)
    if (run.first === null) missing("The run ended before it had a state.")
    run.states ??= new States(run.first, (k) => run.steps[k]?.patch ?? [], run.run.steps, run.end)
    return run.states
  }
  /** @param {any[]} rows */
  const totals = (rows) => {
    const sum = (/** @type {(row: any) => number} */ of_) => rows.reduce((all, row) => all + of_(row), 0)
    return { runs: rows.length, steps: sum((row) => row.steps), seconds: sum((row) => row.seconds ?? 0), usage: { tokens_in: sum((row) => row.usage.tokens_in), tokens_out: sum((row) => row.usage.tokens_out), cost: sum((row) => row.usage.cost ?? 0) }, errors: sum((row) => row.errors), unknown_cost: rows.filter((row) => row.usage.cost === null).length }
  }

  /** @type {Source} */
  const source = {
    live: false,
    async runs(query) {
      const wanted = (query.q ?? "").toLowerCase()
      const rows = head.rows.filter((/** @type {any} */ row) => (query.under ? row.parent?.run === query.under : query.flat || !row.parent?.here || wanted) && [row.objective, row.task, row.id, row.module, ...row.tags].some((text) => text.toLowerCase().includes(wanted)) && (!query.status || query.status.split(",").includes(row.status)))
      /** @param {string} name */
      const facet = (name) => [...new Set(head.rows.map((/** @type {any} */ row) => row[name]).filter(Boolean))].map((value) => ({ value: String(value), count: head.rows.filter((/** @type {any} */ row) => row[name] === value).length }))
      const offset = query.offset ?? 0
      return { rows: rows.slice(offset, offset + (query.limit ?? 100)), total: rows.length, totals: totals(rows), facets: { status: facet("status"), reason: facet("reason"), module: facet("module"), task: facet("task"), tag: [] }, folder: "", indexing: null }
    },
    totals: async (ids) => totals(head.rows.filter((/** @type {any} */ row) => ids.includes(row.id))),
    run: async (id) => of(id).run,
    async columns(id, from, to, n) {
      const { steps } = of(id)
      return columnsOf(steps, Math.max(0, from), Math.min(to, steps.length), n)
    },
    steps: async (id, from, to) => of(id).steps.slice(from, to).map((each) => each.row),
    async find(id, from, mode, back) {
      const { steps } = of(id)
      for (let k = from; k >= 0 && k < steps.length; k += back ? -1 : 1) if (mode.includes(/** @type {StepLine} */ (steps[k]).mode)) return k
      return null
    },
    step: async (id, k) => of(id).steps[k]?.step ?? missing(`The run has no step ${k}.`),
    async changes(id, k) {
      const line = of(id).steps[k] ?? missing(`The run has no step ${k}.`)
      return line.changes ?? { k, count: 0, tree: null, more: 0 }
    },
    async state(id, k, path, offset, limit) {
      const found = looked(states(id).at(k), path) ?? missing(`There is nothing at ${path}.`)
      const tokens = tokensOf(path)
      const key = tokens[tokens.length - 1]
      return nodeOf(found, `s:${k}:${path}`, { offset, limit: Math.max(1, Math.min(limit, MEMBERS)), ...(key === undefined ? {} : { key }) })
    },
    async value(id, at, offset, length) {
      const [, k = "", path = ""] = /^s:(-?\d+):(.*)$/s.exec(at) ?? []
      const value = at.startsWith("s:") ? looked(states(id).at(Number(k)), path)?.value : of(id).values[at]
      if (value === undefined) missing("The rest of this value")
      const text = typeof value === "string" ? value : jsonOf(value, 2)
      return { text: text.slice(offset, offset + length), size: text.length }
    },
    async history(id, path, offset) {
      const found = [...changesOf(states(id), path)]
      return { path, entries: found.slice(offset, offset + 100), steps: [...new Set(found.map((each) => each.k))], total: found.length }
    },
    async search(id, q, after) {
      const { steps, run, values, first } = of(id)
      const pattern = new RegExp(q.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu")
      const until = performance.now() + SLICE_MS
      /** @type {Hit[]} */
      const hits = []
      let k = after === null ? -1 : Number(after)
      for (; k < steps.length && hits.length < HITS && performance.now() < until; k++) {
        for (const [where, path, text] of k < 0 ? beginningTexts(run, first) : textsOf(/** @type {StepLine} */ (steps[k]), values)) {
          const match = pattern.exec(text)
          if (!match) continue
          const end = match.index + match[0].length
          hits.push({ k, where: /** @type {Hit["where"]} */ (where), path, before: (match.index > AROUND ? "…" : "") + text.slice(Math.max(0, match.index - AROUND), match.index), match: match[0], after: text.slice(end, end + AROUND) + (text.length > end + AROUND ? "…" : "") })
        }
      }
      return { hits, next: k < steps.length ? String(k) : null, searched: steps.length ? Math.min(1, (k + 1) / steps.length) : 1 }
    },
    async chat(id, from, to) {
      const { steps, beginning } = of(id)
      const stop = Math.min(to, steps.length)
      return { from, to: stop, turns: [...(from <= 0 ? beginning : []), ...steps.slice(from, stop).flatMap((each) => each.turns)], total: steps.length }
    },
    async compare(a, b) {
      return head.compared.find((/** @type {any} */ each) => each.a.id === a && each.b.id === b) ?? missing("This comparison was not exported.")
    },
    family: async (id) => head.families.find((/** @type {any} */ each) => each.root === of(id).root) ?? missing("Its family was not exported."),
    events: () => () => {},
  }
  const open = head.open.map(encodeURIComponent)
  const home = head.compared.length ? `#/compare/${open[0]}/${open[1]}` : open.length === 1 ? `#/run/${open[0]}` : "#/"
  return { source, home }
}

/** @param {StepLine[]} lines @param {number} from @param {number} to @param {number} most */
function columnsOf(lines, from, to, most) {
  const steps = Math.max(0, to - from)
  const n = Math.min(most, steps)
  /** @type {any} */
  const found = { from, to, n, first: [], mode: "", seconds: [], tokens: [], cost: [], sum_seconds: [], sum_tokens: [], sum_cost: [] }
  const sums = [0, 0, 0]
  const used = (/** @type {any} */ row) => [row.seconds ?? 0, row.usage.tokens_in + row.usage.tokens_out, row.usage.cost ?? 0]
  for (const { row } of lines.slice(0, from)) used(row).forEach((value, i) => (sums[i] += value))
  let column = -1
  for (let k = from; k < to; k++) {
    const at = Math.floor(((k - from) * n) / steps)
    if (at !== column) {
      column = at
      found.first.push(k)
      for (const name of ["seconds", "tokens", "cost", "sum_seconds", "sum_tokens", "sum_cost"]) found[name].push(0)
      found.mode += "."
    }
    const { row, mode } = /** @type {StepLine} */ (lines[k])
    const values = used(row)
    const i = found.first.length - 1
    ;["seconds", "tokens", "cost"].forEach((name, j) => (found[name][i] = Math.max(found[name][i], values[j])))
    values.forEach((value, j) => (sums[j] += value))
    ;["sum_seconds", "sum_tokens", "sum_cost"].forEach((name, j) => (found[name][i] = sums[j]))
    if (RARE.indexOf(mode) < RARE.indexOf(found.mode[i])) found.mode = found.mode.slice(0, i) + mode + found.mode.slice(i + 1)
  }
  found.n = found.first.length
  return found
}

/** Each change of the value at a path. @param {States} states @param {string} path */
function* changesOf(states, path) {
  const tokens = tokensOf(path)
  const short = (/** @type {any} */ found) => (found === null ? null : nodeOf(found, "", { text: 200, left: { count: 20 } }))
  const plain = (/** @type {any} */ found) => (found === null ? null : jsonOf(found.value))
  if (tokens.includes("*") || tokens.includes("**")) return yield* starred(states, tokens)
  // one more than there are steps: what the run's end changed stands at the last step
  for (let k = 0; k <= states.steps; k++) {
    const ends = k === states.steps
    if (!touches(ends ? states.end : states.patch(k), tokens)) continue
    const old = looked(states.at(k), path)
    const before = [plain(old), short(old)]
    const now = looked(states.at(ends ? -1 : k + 1), path)
    if (before[0] === plain(now)) continue
    yield { k: ends ? Math.max(0, k - 1) : k, old: strip(/** @type {any} */ (before[1])), new: strip(short(now)) }
  }
}

/** Each operation at a path with stars. @param {States} states @param {string[]} tokens */
function* starred(states, tokens) {
  for (let k = 0; k < states.steps; k++)
    for (const { op, path, value } of states.patch(k)) {
      const at = tokensOf(path)
      const deep = tokens[tokens.length - 1] === "**"
      const wanted = deep ? tokens.slice(0, -1) : tokens
      const fits = deep ? at.length >= wanted.length : at.length === wanted.length
      if (!fits || !wanted.every((token, i) => token === "*" || token === at[i])) continue
      const old = op === "add" ? null : looked(states.at(k), path)
      yield { k, old: old && strip(nodeOf(old, "", { text: 200, left: { count: 20 } })), new: op === "remove" ? null : strip(nodeOf({ value, by: { by: k } }, "", { text: 200, left: { count: 20 } })) }
    }
}

/** Without who wrote it: the history says so itself. @param {any} node @returns {any} */
function strip(node) {
  if (!node) return null
  const { by, at, ...rest } = node
  return rest.children ? { ...rest, children: rest.children.map(strip) } : rest
}

/** Whether a patch may change the value at a path. @param {Operation[]} patch @param {string[]} tokens */
function touches(patch, tokens) {
  return patch.some(({ path }) => {
    const at = tokensOf(path)
    for (let i = 0; i < Math.min(at.length, tokens.length); i++) if (at[i] !== tokens[i]) return i === at.length - 1 && /^(\d+|-)$/.test(/** @type {string} */ (at[i])) && /^\d+$/.test(/** @type {string} */ (tokens[i]))
    return true
  })
}

/** @param {any} run @param {Json} first @returns {Generator<[string, string, string]>} */
function* beginningTexts(run, first) {
  yield ["task", "/objective", run.objective]
  yield* walked("task", "/inputs", run.inputs)
  yield* walked("state", "", first)
}

/** The texts of a step that a person may look for. @param {StepLine} line @param {Record<string, string>} values @returns {Generator<[string, string, string]>} */
function* textsOf({ step, patch }, values) {
  const { decision } = step
  if (decision) {
    if (decision.rationale) yield ["decision", "/rationale", decision.rationale]
    if (decision.prompt) yield ["decision", "/prompt", decision.prompt]
    if (decision.answer) yield* noded("answer", "", decision.answer, values)
  }
  for (const [i, call] of step.calls.entries()) {
    yield ["decision", `/actions/${i}/name`, call.name]
    yield* noded("argument", `/${i}`, call.args, values)
    if (call.output) yield* noded("result", `/${i}`, call.output, values)
    if (call.error) yield ["error", `/${i}`, `${call.error.type}: ${call.error.message}`]
  }
  for (const event of step.events) {
    yield ["event", "/name", event.name]
    yield* noded("event", "/data", event.data, values)
  }
  for (const asked of step.asked) {
    yield ["decision", "/prompt", asked.request.prompt]
    if (asked.answer) yield* noded("answer", "", asked.answer, values)
  }
  for (const { path, value } of patch) yield* walked("state", path, value ?? null)
}

/** @param {string} where @param {string} path @param {any} node @param {Record<string, string>} values @returns {Generator<[string, string, string]>} */
function* noded(where, path, node, values) {
  if (node.kind === "text") yield [where, path, values[node.at] ?? String(node.value ?? "")]
  else if (node.kind === "number") yield [where, path, node.raw ?? String(node.value)]
  for (const child of node.children ?? []) yield* noded(where, `${path}/${child.key}`, child, values)
}

/** @param {string} where @param {string} path @param {any} value @returns {Generator<[string, string, string]>} */
function* walked(where, path, value) {
  if (typeof value === "string") yield [where, path, value]
  else if (typeof value === "number") yield [where, path, String(value)]
  else if (isContainer(value)) for (const [key, each] of Object.entries(value)) yield* walked(where, `${path}/${key.replace(/~/g, "~0").replace(/\//g, "~1")}`, each)
  else if (typeof value === "bigint") yield [where, path, String(value)]
}
