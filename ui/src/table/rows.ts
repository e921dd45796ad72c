/** The rows of the table: what is shown of them, and in which order. */

export interface Entry {
  name: string
  samples: number
  share: number
  self?: number
  total?: number
  module?: string
}

export type Column = 'name' | 'module' | 'self' | 'total'
export interface Order {
  column: Column
  falling: boolean
}

const COLUMNS: readonly Column[] = ['name', 'module', 'self', 'total']

/** `total-` is by total, the most first; `name` is by name from A. */
export function readOrder(text: string): Order {
  const falling = text.endsWith('-')
  const name = falling ? text.slice(0, -1) : text
  const column = COLUMNS.find((each) => each === name)
  return column ? { column, falling } : { column: 'total', falling: true }
}

export const writeOrder = ({ column, falling }: Order): string => `${column}${falling ? '-' : ''}`

/** The order after a click on a column's head: turned around, or as that column is best read. */
export function turned(order: Order, column: Column): Order {
  if (order.column === column) return { column, falling: !order.falling }
  return { column, falling: column === 'self' || column === 'total' }
}

/** Samples that `self` and `total` are shares of. */
export function wholeOf(entries: readonly Entry[]): number {
  const largest = entries.find((entry) => entry.share > 0)
  return largest ? largest.samples / largest.share : 0
}

export function sorted(entries: readonly Entry[], { column, falling }: Order): Entry[] {
  const sign = falling ? -1 : 1
  return [...entries].sort((one, other) => sign * compare(one, other, column))
}

function compare(one: Entry, other: Entry, column: Column): number {
  if (column === 'total') return one.samples - other.samples
  if (column === 'self') return (one.self ?? 0) - (other.self ?? 0)
  const [a, b] = [one[column] ?? '', other[column] ?? '']
  return a < b ? -1 : a > b ? 1 : 0
}
