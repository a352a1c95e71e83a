/** The source that asks the server. */

/**
 * @typedef {import("./api.d.ts").Source} Source
 * @typedef {import("./api.d.ts").LiveEvent} LiveEvent
 */

/** What went wrong, as the server told it; `kind` is "gone" where it did not answer. */
export class ProblemError extends Error {
  /** @param {string} kind @param {string} message @param {string | null} hint */
  constructor(kind, message, hint) {
    super(message)
    this.kind = kind
    this.hint = hint
  }
}

/** @param {string} address @param {RequestInit} [init] @returns {Promise<any>} */
async function asked(address, init) {
  let answer
  try {
    answer = await fetch(address, init)
  } catch {
    throw new ProblemError("gone", "The server does not answer.", "Is `refold view` still running?")
  }
  const type = answer.headers.get("content-type") ?? ""
  if (!type.startsWith("application/json")) throw new ProblemError("refused", `The server answered ${answer.status}.`, await answer.text())
  const document = await answer.json()
  if (!answer.ok) throw new ProblemError(document.error.kind, document.error.message, document.error.hint)
  return document
}

/** @param {string} name @param {Record<string, any>} query @returns {Promise<any>} */
function get(name, query) {
  const given = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value != null && value !== false) given.set(key, String(value))
  return asked(`/api/${name}?${given}`)
}

/** The token of the printed address: kept in this tab alone, and taken out of what could be copied. @returns {string | null} */
function token() {
  const address = new URL(location.href)
  const given = address.searchParams.get("token")
  try {
    if (given) {
      sessionStorage.setItem("refold-token", given)
      address.searchParams.delete("token")
      history.replaceState(null, "", address)
    }
    return sessionStorage.getItem("refold-token")
  } catch {
    return given // storage is off, or this is a frame without an origin
  }
}

/** @param {string} name @param {Record<string, any>} body @returns {Promise<any>} */
const post = (name, body) =>
  asked(`/api/act/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", "X-Refold-Token": token() ?? "" },
    body: JSON.stringify(body),
  })

/** @type {Source} */
export const remote = {
  live: true,
  runs: (query) => get("runs", query),
  totals: (ids) => get("totals", { ids: ids.join(",") }),
  run: (id) => get("run", { id }),
  columns: (id, from, to, n) => get("columns", { id, from, to, n }),
  steps: (id, from, to) => get("steps", { id, from, to }),
  find: (id, from, mode, back) => get("find", { id, from, mode, back }),
  step: (id, k) => get("step", { id, k }),
  changes: (id, k) => get("changes", { id, k }),
  state: (id, k, path, offset, limit) => get("state", { id, k, path, offset, limit }),
  value: (id, at, offset, length) => get("value", { id, at, offset, length }),
  history: (id, path, offset) => get("history", { id, path, offset }),
  search: (id, q, after) => get("search", { id, q, after }),
  chat: (id, from, to) => get("chat", { id, from, to }),
  compare: (a, b, n, k) => get("compare", { a, b, n, k }),
  family: (id) => get("family", { id }),
  events(id, heard) {
    const stream = new EventSource(`/api/events${id === null ? "" : `?id=${encodeURIComponent(id)}`}`)
    /** @param {MessageEvent<string>} message */
    const hear = (message) => heard(/** @type {LiveEvent} */ (JSON.parse(message.data)))
    for (const name of ["message", "runs", "run", "hello"]) stream.addEventListener(name, hear)
    return () => stream.close()
  },
}

if (token()) {
  remote.act = {
    offered: (id) => post("offered", { id }),
    agree: (id, question) => post("agree", { id, question }),
    answer: (id, request, value) => post("answer", { id, request, value }),
    fork: (id, k, edits, reuse) => post("fork", { id, k, edits, reuse }),
    resume: (id) => post("resume", { id }),
    verify: (id) => post("verify", { id }),
  }
}
