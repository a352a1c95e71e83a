/** What the page uses of preact and htm, of which `preact.js` is the joint file; their own types are not built for it. */

export type Child = VNode | string | number | boolean | null | undefined | Child[]
export interface VNode { type: unknown, props: Record<string, unknown>, key: unknown }
/** What htm makes of a template: one node, or several. */
export function html(strings: TemplateStringsArray, ...values: any[]): any
export function render(what: any, into: Element): void
export function useState<T>(first: T | (() => T)): [T, (next: T | ((old: T) => T)) => void]
export function useEffect(run: () => void | (() => void), asked?: readonly unknown[]): void
export function useLayoutEffect(run: () => void | (() => void), asked?: readonly unknown[]): void
/** The error of what is inside, if there was one; `told` hears of it. */
export function useErrorBoundary(told?: (error: unknown) => void): [unknown, () => void]
export function useRef<T>(first: T): { current: T }
export function useMemo<T>(make: () => T, asked: readonly unknown[]): T
export function useCallback<T extends (...given: any[]) => any>(act: T, asked: readonly unknown[]): T
