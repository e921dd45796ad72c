/** The row of the node's facts that a piece of evidence is about: in the link, and marked. */
import { param } from '../state'

/** A cgroup's path, a unit, a container or `NIC queue N`; empty for none. */
export const row = param('row')

/** The attributes of a row; the marked one is scrolled to. */
export function rowAttributes(name: string): { 'data-marked'?: true; 'aria-current'?: 'true' } {
  return row.value !== '' && row.value === name
    ? { 'data-marked': true, 'aria-current': 'true' }
    : {}
}

/** The first `most` rows, and the marked one wherever it stands. */
export function firstAndMarked<T>(
  rows: readonly T[],
  most: number,
  nameOf: (each: T) => string,
  marked: string,
): T[] {
  return rows.filter((each, place) => place < most || (marked !== '' && nameOf(each) === marked))
}
