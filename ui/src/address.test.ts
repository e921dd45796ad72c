import { describe, expect, test } from 'vitest'
import { readAddress, readRange, writeAddress, type Address } from './address'

const FULL: Address = {
  view: { from: 1_790_000_000_000, to: 1_790_000_600_000.25 },
  selection: { from: 1_790_000_100_000.125, to: 1_790_000_105_000 },
  filters: {
    cpu: '0-5,39',
    pid: '17',
    comm: 'kube let&=?#',
    cgroup: '/kubepods/pod~1',
    mode: 'kernel',
    frame: '^mem_cgroup.*(lru|pages)$',
    no_frame: 'a+b%20',
  },
  mode: 'compare',
  params: { search: '<b>é</b>', merge: 'comm' },
}

describe('the address', () => {
  test('gives back all it was given', () => {
    expect(readAddress(writeAddress(FULL))).toEqual(FULL)
  })

  test('is empty when all is as it comes', () => {
    const plain = readAddress('')
    expect(plain).toEqual({ view: null, selection: null, filters: {}, mode: 'flame', params: {} })
    expect(writeAddress(plain)).toBe('')
  })

  test('is the same text for the same state', () => {
    expect(writeAddress(readAddress('?b=2&tab=table&a=1'))).toBe('?tab=table&a=1&b=2')
    expect(writeAddress(FULL)).toMatch(/^\?view=1790000000000~1790000600000.25&/)
  })

  test('leaves out what nobody can mean', () => {
    const odd = readAddress('?tab=nothing&m=both&view=5~1&sel=a~b&cpu=&token=secret')
    expect(odd).toEqual({ view: null, selection: null, filters: {}, mode: 'flame', params: {} })
  })
})

test.each([null, '', '1', '1~', '~2', '1~2~3', 'Infinity~2', '3~3', 'x~1'])(
  '%j is no range',
  (text) => {
    expect(readRange(text)).toBeNull()
  },
)

test('an address that the server writes of a view is read (records/view_forms.py)', () => {
  const flame = readAddress('?sel=1779999990500~1780000000000&cpu=39&m=kernel')
  expect(flame.selection).toEqual({ from: 1779999990500, to: 1780000000000 })
  expect(flame.filters).toEqual({ cpu: '39', mode: 'kernel' })
  expect(flame.mode).toBe('flame')
  expect(readAddress('?sel=1779999985000~1780000000000&tab=facts').mode).toBe('facts')
})
