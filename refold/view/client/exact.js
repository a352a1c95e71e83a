/** JSON that somebody typed, with each number as it was typed: 1.0 stays 1.0, and a long integer keeps its digits. */

/** @typedef {import("./api.d.ts").Json} Json */

const json = /** @type {JSON & { rawJSON?: (text: string) => Json }} */ (JSON)
const TEXTS = /"(?:[^"\\]|\\.)*"/gs
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

/** Whether this browser cannot keep an integer of a text: it is too old for `JSON.rawJSON`. @param {string} text */
export const inexact = (text) => !json.rawJSON && (text.replace(TEXTS, "").match(NUMBERS) ?? []).some((one) => /^-?\d+$/.test(one) && !Number.isSafeInteger(Number(one)))
