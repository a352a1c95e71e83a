/** Text of strangers, made visible: what has no glyph, or turns the line round, is named. */

export const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

/** @param {string} text @returns {string} - with control characters as pictures, and bidi marks as their code points */
export function visible(text) {
  return text.replace(HIDDEN, (one) => {
    const code = /** @type {number} */ (one.codePointAt(0))
    if (code < 0x20) return String.fromCharCode(0x2400 + code)
    if (code === 0x7f) return "\u2421"
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`
  })
}

/** A part of an address, or the part as it is if an escape in it is broken. @param {string} part */
export function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The text in one line, at most `most` units long. @param {string} text @param {number} [most] */
export function oneLine(text, most = 200) {
  const line = visible(text.length > most * 4 ? text.slice(0, most * 4) : text).replace(/\s+/g, " ").trim()
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}
