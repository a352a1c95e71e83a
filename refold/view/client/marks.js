/**
 * Marks: how much of the folder's changes an answer or an event of the server has in it.
 *
 * Whoever holds an answer and hears nothing with a newer mark has no need to ask again. A mark is `<server>:<number>`;
 * marks of two starts of the server cannot be compared.
 */

/** Whether what has the first mark lacks something that has the second. @param {string | null | undefined} one @param {string | null | undefined} other */
export function isOlder(one, other) {
  if (!one || !other) return true
  const [mine = "", a = ""] = one.split(":")
  const [theirs = "", b = ""] = other.split(":")
  return mine !== theirs || Number(a) < Number(b)
}
