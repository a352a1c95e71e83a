/** A command to be copied to a terminal. */

/** One argument, in quotes where a shell needs them. @param {string} text */
export const quoted = (text) => (/^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`)

/** `refold resume`, with an answer. @param {string} run @param {string} [request] @param {string} [value] */
export const resumeCommand = (run, request, value) => ["refold resume", quoted(run), ...(request ? ["--request", quoted(request)] : []), ...(value !== undefined ? ["--value", quoted(value)] : [])].join(" ")

/**
 * `refold fork`, with edits, a line each.
 *
 * @param {string} run
 * @param {number} k
 * @param {{ path: string, value: import("../../api.d.ts").Json }[]} edits
 * @param {boolean} reuse
 */
export const forkCommand = (run, k, edits, reuse) =>
  [`refold fork ${quoted(run)} --at ${k}`, ...edits.map(({ path, value }) => `  --set ${quoted(`${path}=${JSON.stringify(value)}`)}`), ...(reuse ? ["  --reuse-effects"] : [])].join(" \\\n")
