import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Recording } from './api'

// a browser's address and history, as far as the store uses them
const entries: string[] = ['/']
let at = 0
const listeners = new Map<string, () => void>()
const place = {
  pathname: '/',
  get search() {
    return (entries[at] ?? '/').slice(1)
  },
}
vi.stubGlobal('location', place)
vi.stubGlobal('history', {
  pushState: (_: unknown, __: string, to: string) => {
    entries.splice(++at, entries.length, to)
  },
  replaceState: (_: unknown, __: string, to: string) => {
    entries[at] = to
  },
})
vi.stubGlobal('addEventListener', (name: string, run: () => void) => listeners.set(name, run))
afterAll(() => vi.unstubAllGlobals())

function back(): void {
  at -= 1
  listeners.get('popstate')?.()
}

const MINUTE = 60_000
const recorded = (from_ms: number, to_ms: number, live = false): Recording => ({
  node: {},
  from_ms,
  to_ms,
  cpus: [0, 1],
  tables: [],
  gaps: [],
  frozen: [],
  live,
  samples: 0,
  version: '',
  revision: to_ms,
})

describe('the store', async () => {
  vi.useFakeTimers()
  const state = await import('./state')
  const search = state.param('search')
  const settle = () => vi.advanceTimersByTime(1000)
  state.keepAddress()

  beforeEach(() => {
    entries.splice(0, entries.length, '/')
    at = 0
    listeners.get('popstate')?.()
    state.recording.value = null
    state.arrive(recorded(0, 60 * MINUTE))
    settle()
  })

  test('shows all and selects the end, and says nothing of it in the address', () => {
    expect(state.view.value).toEqual({ from: 0, to: 60 * MINUTE })
    expect(state.selection.value).toEqual({ from: 58 * MINUTE, to: 60 * MINUTE })
    expect(place.search).toBe('')
  })

  test('a selection is a step of history, a look is none', () => {
    state.look({ from: MINUTE, to: 2 * MINUTE })
    settle()
    expect(entries).toEqual(['/?view=60000~120000'])
    state.select({ from: 70_000, to: 75_000 })
    expect(entries).toEqual(['/?view=60000~120000', '/?view=60000~120000&sel=70000~75000'])
    back()
    expect(state.selection.value).toEqual({ from: 58 * MINUTE, to: 60 * MINUTE })
    expect(state.view.value).toEqual({ from: MINUTE, to: 2 * MINUTE })
  })

  test('a jump is one step, and what it is about can be seen', () => {
    state.look({ from: 0, to: MINUTE })
    const range = { from: 30 * MINUTE, to: 30 * MINUTE + 5000 }
    state.jump({ range, filters: { cpu: '39', comm: '' }, mode: 'table' })
    expect(entries).toHaveLength(2)
    expect(state.filters.value).toEqual({ cpu: '39' })
    expect(state.mode.value).toBe('table')
    expect(state.view.value.from).toBeLessThan(range.from)
    expect(state.view.value.to).toBeGreaterThan(range.to)
    back()
    expect(state.filters.value).toEqual({})
    expect(state.view.value).toEqual({ from: 0, to: MINUTE })
  })

  test('a jump selects only what was recorded', () => {
    state.jump({ range: { from: -20 * MINUTE, to: MINUTE }, filters: {} })
    expect(state.selection.value).toEqual({ from: 0, to: MINUTE })
    state.jump({ range: { from: 59 * MINUTE, to: 80 * MINUTE } })
    expect(state.selection.value).toEqual({ from: 59 * MINUTE, to: 60 * MINUTE })
  })

  test('what a jump also sets belongs to its step', () => {
    state.jump({ mode: 'flame', also: () => (search.value = 'iter') })
    expect(entries).toEqual(['/', '/?search=iter'])
  })

  test('a proposed span is selected and in the link, without a step', () => {
    state.propose({ from: 30 * MINUTE, to: 30 * MINUTE + 6000 })
    expect(state.selection.value).toEqual({ from: 30 * MINUTE, to: 30 * MINUTE + 6000 })
    expect(state.view.value.from).toBeGreaterThan(29 * MINUTE)
    settle()
    expect(entries).toHaveLength(1)
    expect(place.search).toContain('sel=1800000~1806000')
  })

  test('nothing is proposed to who chose a time', () => {
    entries[0] = '/?sel=1000~2000'
    listeners.get('popstate')?.()
    state.propose({ from: 30 * MINUTE, to: 31 * MINUTE })
    expect(state.selection.value).toEqual({ from: 1000, to: 2000 })
  })

  test('what goes along with a selection by hand is in its step; a jump takes nothing along', () => {
    state.alongSelect((range) => (search.value = String(range.from)))
    state.jump({ range: { from: 5000, to: 6000 } })
    expect(search.value).toBe('')
    state.select({ from: 7000, to: 8000 })
    expect(search.value).toBe('7000')
    expect(entries).toHaveLength(3)
  })

  test('a jump to where one is, is no step', () => {
    state.show('flame')
    state.filter({})
    expect(entries).toHaveLength(1)
  })

  test('a panel’s own value is in the link, its fallback is not', () => {
    search.value = 'a&b'
    settle()
    expect(place.search).toBe('?search=a%26b')
    search.value = ''
    settle()
    expect(place.search).toBe('')
    expect(() => state.param('search')).toThrow('taken')
    expect(() => state.param('cpu')).toThrow('taken')
  })

  test('grows with a live recording while nobody chose', () => {
    state.arrive(recorded(0, 61 * MINUTE, true))
    expect(state.view.value.to).toBe(61 * MINUTE)
    expect(state.selection.value.to).toBe(61 * MINUTE)
    state.arrive(recorded(0, 61 * MINUTE + 1000, true))
    // the selection is read anew when it moves: not at every second
    expect(state.view.value.to).toBe(61 * MINUTE + 1000)
    expect(state.selection.value.to).toBe(61 * MINUTE)
  })

  test('what was chosen stays, unless it follows', () => {
    state.look({ from: 0, to: MINUTE })
    state.select({ from: 0, to: 1000 })
    state.arrive(recorded(0, 70 * MINUTE, true))
    expect(state.view.value).toEqual({ from: 0, to: MINUTE })
    expect(state.selection.value).toEqual({ from: 0, to: 1000 })
    state.follow(10 * MINUTE)
    state.arrive(recorded(0, 71 * MINUTE, true))
    expect(state.view.value).toEqual({ from: 61 * MINUTE, to: 71 * MINUTE })
    state.lookAtAll()
    expect(state.view.value).toEqual({ from: 0, to: 71 * MINUTE })
  })

  test('a link of another recording shows this one, and says so', () => {
    entries[0] = '/?view=-90000~-60000&sel=-80000~-70000&cpu=39'
    listeners.get('popstate')?.()
    state.recording.value = null
    state.arrive(recorded(0, 60 * MINUTE))
    expect(state.view.value).toEqual({ from: 0, to: 60 * MINUTE })
    expect(state.selection.value.to).toBe(60 * MINUTE)
    expect(state.filters.value).toEqual({ cpu: '39' })
    expect(state.noticed.value.text).toContain('not in this recording')
  })

  test('a link that shows more than there is shows what there is', () => {
    entries[0] = '/?view=-90000~60000&sel=1000~2000'
    listeners.get('popstate')?.()
    state.recording.value = null
    state.arrive(recorded(0, 60 * MINUTE))
    expect(state.view.value).toEqual({ from: 0, to: MINUTE })
    expect(state.selection.value).toEqual({ from: 1000, to: 2000 })
  })

  test('nothing empty is selected or looked at', () => {
    const before = state.selection.value
    state.select({ from: 5, to: 5 })
    state.look({ from: 9, to: 3 })
    expect(state.selection.value).toBe(before)
    expect(entries).toHaveLength(1)
  })

  test('nothing is proposed to who does something with the page already', () => {
    const before = state.selection.value
    listeners.get('keydown')?.()
    state.propose({ from: 30 * MINUTE, to: 31 * MINUTE })
    expect(state.selection.value).toBe(before)
  })
})
