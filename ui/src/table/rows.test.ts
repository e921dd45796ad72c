import { expect, it } from 'vitest'
import { readOrder, sorted, turned, wholeOf, writeOrder, type Entry } from './rows'

const entries: Entry[] = [
  { name: 'b', samples: 60, share: 0.6, self: 1, total: 60, module: 'x' },
  { name: 'a', samples: 40, share: 0.4, self: 30, total: 40, module: 'y' },
]
const names = (order: string) => sorted(entries, readOrder(order)).map((entry) => entry.name)

it('sorts by any column, both ways', () => {
  expect(names('total-')).toEqual(['b', 'a'])
  expect(names('total')).toEqual(['a', 'b'])
  expect(names('self-')).toEqual(['a', 'b'])
  expect(names('name')).toEqual(['a', 'b'])
  expect(names('module-')).toEqual(['a', 'b'])
})

it('reads its own orders, and anything else as the most first', () => {
  for (const text of ['name', 'self-', 'module-']) expect(writeOrder(readOrder(text))).toBe(text)
  expect(readOrder('nonsense')).toEqual({ column: 'total', falling: true })
})

it('turns around, or starts as a column is best read', () => {
  expect(turned(readOrder('total-'), 'total')).toEqual({ column: 'total', falling: false })
  expect(turned(readOrder('total-'), 'self')).toEqual({ column: 'self', falling: true })
  expect(turned(readOrder('total-'), 'name')).toEqual({ column: 'name', falling: false })
})

it('knows what shares are of', () => {
  expect(wholeOf(entries)).toBeCloseTo(100)
  expect(wholeOf([])).toBe(0)
})
