/** JSON that somebody typed, with each number as it was typed: 1.0 stays 1.0, and a long integer keeps its digits. */

/** @typedef {import("./api.d.ts").Json} Json */

const json = /** @type {JSON & { rawJSON?: (text: string) => Json }} */ (JSON)
const TEXTS = /"(?:[^"\\]|\\.)*"/gs
const PARTS = /("(?:[^"\\]|\\.)*")|\s+/gs
const NUMBERS = /-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi

/**
 * Parse JSON. A number that JavaScript would write in another way stands as its text, which `JSON.stringify` writes.
 *
 * @param {string} text
 * @returns {Json}
 */
export function parseExact(text) {
  const raw = json.rawJSON
  if (!raw) return JSON.parse(text)
  const keep = (/** @type {string} */ _, /** @type {any} */ value, /** @type {{ source?: string }} */ context) =>
    typeof value === "number" && context?.source !== undefined && context.source !== JSON.stringify(value) ? raw(context.source) : value
  return JSON.parse(text, /** @type {any} */ (keep))
}

/** Whether this browser cannot keep a number of a text: it is too old for `JSON.rawJSON`. @param {string} text */
export const inexact = (text) => !json.rawJSON && (text.replace(TEXTS, "").match(NUMBERS) ?? []).some(changes)

/** Whether JavaScript would write a number as one of another value or kind. @param {string} one */
const changes = (one) => (/^-?\d+$/.test(one) ? !Number.isSafeInteger(Number(one)) : /^-?\d+$/.test(String(Number(one))))

/** Whether a text is JSON. @param {string} text */
export function isJson(text) {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/**
 * What is typed as a value, as JSON: what is JSON as it was typed, without the white space between its parts, and anything
 * else as text. So numbers and the order of members stay as they are.
 *
 * @param {string} text
 * @returns {string}
 */
export const jsonText = (text) => (isJson(text) ? text.replace(PARTS, "$1") : JSON.stringify(text))
