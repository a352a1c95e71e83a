/** What the page uses of fast-myers-diff. */

/** Where b differs from a: items `[fromA, toA)` are replaced by `[fromB, toB)`. */
export function diff(a: ArrayLike<unknown>, b: ArrayLike<unknown>): Iterable<[number, number, number, number]>
