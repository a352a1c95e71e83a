/**
 * The search of the runs: words, and filters such as `steps>100`, `tag:nightly` or `since:2d`.
 *
 * @typedef {import("../../api.d.ts").RunQuery} RunQuery
 */

const FIGURES = /** @type {const} */ ({ seconds: ["min_seconds", "max_seconds", 1e-9], steps: ["min_steps", "max_steps", 1], tokens: ["min_tokens", "max_tokens", 1], cost: ["min_cost", "max_cost", 1e-9] })
const NAMES = new Set(["status", "reason", "module", "task", "tag"])
/** The zone in which a date is read. */
export const zone = () => new Intl.DateTimeFormat().resolvedOptions().timeZone
const AGO = /** @type {Record<string, number>} */ ({ m: 60, h: 3600, d: 86400, w: 604800 })
const TERM = /([a-z]+)(>=|<=|>|<|:)("[^"]*"|\S+)|"([^"]*)"|(\S+)/gi

/**
 * Split a search text into its words and its filters. A filter that makes no sense is a word like any other.
 *
 * @param {string} text
 * @param {number} now - seconds since 1970
 * @returns {RunQuery}
 */
export function parseSearch(text, now) {
  /** @type {Record<string, string | number | string[]>} */
  const query = {}
  const words = []
  for (const [all, name, sign, value, quoted, word] of text.matchAll(TERM)) {
    const plain = value?.replace(/^"|"$/g, "")
    if (name && sign && plain && filter(query, name.toLowerCase(), sign, plain, now)) continue
    words.push(quoted ?? word ?? all)
  }
  if (words.length) query.q = words.join(" ")
  return query
}

/** What looks like a filter in a search text and is none, with the reason. @param {string} text @param {number} now @returns {string[]} */
export function unread(text, now) {
  const hints = []
  for (const [all, name, sign, value] of text.matchAll(TERM)) {
    const plain = value?.replace(/^"|"$/g, "")
    const known = name?.toLowerCase() ?? ""
    if (!name || !sign || !plain || filter({}, known, sign, plain, now)) continue
    if (known in FIGURES) hints.push(sign === ":" ? `“${all}” is read as a word: write ${known}>100 or ${known}<=100.` : `“${all}” is read as a word: after ${known}${sign} there must be a number.`)
    else if (known === "since" || known === "until") hints.push(`“${all}” is read as a word: after ${known}: there must be a date such as 2026-11-01, or an age such as 2d.`)
    else if (NAMES.has(known)) hints.push(`“${all}” is read as a word: write ${known}:${plain}.`)
    else hints.push(`“${all}” is read as a word: the filters are ${[...NAMES].join(":, ")}:, since: and until:, and ${Object.keys(FIGURES).join(", ")} with > or <.`)
  }
  return hints
}

/**
 * @param {Record<string, string | number | string[]>} query
 * @param {string} name
 * @param {string} sign
 * @param {string} value
 * @param {number} now
 */
function filter(query, name, sign, value, now) {
  if (sign === ":" && NAMES.has(name)) {
    query[name] = [query[name] ?? [], value].flat().map(String)
    return true
  }
  if (sign === ":" && (name === "since" || name === "until")) {
    const at = moment(value, now, name)
    if (at === null) return false
    query[name] = at
    return true
  }
  if (!(name in FIGURES) || sign === ":") return false
  const [least, most, grain] = FIGURES[/** @type {keyof typeof FIGURES} */ (name)]
  const figure = number(value)
  if (figure === null) return false
  if (sign[0] === ">") query[least] = sign === ">" ? figure + grain : figure
  else query[most] = sign === "<" ? figure - grain : figure
  return true
}

/** A number as it is typed: `1200`, `1.2k`, `3M`. @param {string} text @returns {number | null} */
export function number(text) {
  const match = /^\$?(\d+(?:\.\d+)?)([kM]?)$/.exec(text.replace(/,/g, ""))
  return match ? Number(match[1]) * (match[2] === "k" ? 1e3 : match[2] === "M" ? 1e6 : 1) : null
}

/**
 * A moment as it is typed: `30m`, `2d` (so long ago), or a date in the reader's time zone. A date alone is a whole day:
 * its beginning for `since`, its end for `until`.
 *
 * @param {string} text @param {number} now @param {string} bound - since or until
 * @returns {number | null}
 */
export function moment(text, now, bound) {
  const ago = /^(\d+)([mhdw])$/.exec(text)
  if (ago) return Math.round(now - Number(ago[1]) * (AGO[ago[2] ?? ""] ?? 0))
  if (!/^\d{4}-\d{2}-\d{2}/.test(text)) return null
  const at = Date.parse(text.length === 10 ? `${text}T${bound === "until" ? "23:59:59.999" : "00:00"}` : text)
  return Number.isNaN(at) ? null : at / 1000
}
