import { expect, test } from 'vitest'
import { byName, byParent, byTrouble, formatBytes, healthOf, troubleOf } from './order'

test('a unit that hides its loop behind "active" is not well', () => {
  expect(troubleOf({ unit: 'a', active: 'active', failures: 9, successes: 0 })).toBe(
    'never succeeded',
  )
  expect(troubleOf({ unit: 'a', active: 'active', result: 'success' })).toBe('')
  expect(troubleOf({ unit: 'a', active: 'failed', result: 'exit-code' })).toBe('failed')
})

test('units whose states were not seen are not called well', () => {
  expect(healthOf([{ unit: 'a' }, { unit: 'b' }])).toBe('2 known by their files; states not seen')
  expect(healthOf([{ unit: 'a', active: 'active' }])).toBe('1, no trouble seen')
  expect(healthOf([{ unit: 'a', active: 'failed' }, { unit: 'b' }])).toBe(
    '2, 1 in trouble; states of 1 not seen',
  )
})

test('units that are not well come first', () => {
  const units = [{ unit: 'b' }, { unit: 'c', active: 'failed' }, { unit: 'a' }]
  expect(byTrouble(units).map((each) => each.unit)).toEqual(['c', 'a', 'b'])
})

test('containers of one name and image are one group', () => {
  const groups = byName([
    { id: '1', name: 'well', image: 'x' },
    { id: '2', name: 'agent', image: 'y', exit_status: 5 },
    { id: '3', name: 'agent', image: 'y', exit_status: 5 },
    { id: '4444444444444444' },
  ])
  expect(groups.map((each) => [each.name, each.containers.length, each.failed])).toEqual([
    ['agent', 2, 2],
    ['well', 1, 0],
    ['444444444444', 1, 0],
  ])
})

test('bytes as people read them', () => {
  expect([0, 999, 4096, 280_000_000].map(formatBytes)).toEqual([
    '0 B',
    '999 B',
    '4.0 KiB',
    '267 MiB',
  ])
})

test('lists a parent once, with every kind of memory its cgroups pin', () => {
  const rows = [
    { path: '/a', dying: 1, kind: 'anon', held_bytes: 5 },
    { path: '/', dying: 9, kind: 'file', held_bytes: 7 },
    { path: '/', dying: 9, kind: 'shmem', held_bytes: 8 },
  ]
  const found = byParent(rows)
  expect(found.map(({ parent }) => parent.path)).toEqual(['/', '/a'])
  expect(found[0]?.pins.map(({ kind }) => kind)).toEqual(['file', 'shmem'])
})
