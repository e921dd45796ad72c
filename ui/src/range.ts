/** A span of wall time in milliseconds since the epoch, `from` included, `to` not. */
export type Range = { from: number; to: number }

export const width = (range: Range): number => range.to - range.from

export const isEmpty = (range: Range): boolean => !(range.to > range.from)

export const sameRange = (a: Range, b: Range): boolean => a.from === b.from && a.to === b.to

export const contains = (range: Range, time: number): boolean =>
  time >= range.from && time < range.to

/** The part both share, or null. */
export function overlap(a: Range, b: Range): Range | null {
  const shared = { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) }
  return isEmpty(shared) ? null : shared
}

/** The range between two times given in any order. */
export const between = (a: number, b: number): Range => ({
  from: Math.min(a, b),
  to: Math.max(a, b),
})
