/** What the page uses of d3-hierarchy. */

export interface Placed<T> { data: T, x: number, y: number, depth: number, parent: Placed<T> | null, children?: Placed<T>[], descendants(): Placed<T>[], links(): { source: Placed<T>, target: Placed<T> }[], each(act: (node: Placed<T>) => void): this, eachBefore(act: (node: Placed<T>) => void): this }
export function hierarchy<T>(root: T, children?: (each: T) => T[] | null | undefined): Placed<T>
export interface Tree { <T>(root: Placed<T>): Placed<T>, nodeSize(size: [number, number]): this, separation(apart: (a: Placed<any>, b: Placed<any>) => number): this }
export function tree(): Tree
