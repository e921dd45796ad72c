import { beforeAll, describe, expect, test, vi } from 'vitest'

const info = (name: string, unit: string) => ({
  name,
  title: name,
  unit,
  group: name.split('.')[0] ?? '',
})

describe('tracks', async () => {
  // state.ts reads the address once: there is none here
  beforeAll(() => vi.unstubAllGlobals())
  vi.stubGlobal('location', { search: '', pathname: '/' })
  const { groupLines, lineInfos, moved, moveTrack, resetTracks, setShown, shown } =
    await import('./tracks')

  test('lines of one group and unit share a track', () => {
    const found = groupLines([
      info('zombies.tracked', 'cgroups'),
      info('zombies.walk', 'ms'),
      info('zombies.dying', 'cgroups'),
    ])
    expect(found.map((track) => [track.id, track.lines.length])).toEqual([
      ['zombies', 2],
      ['zombies.ms', 1],
    ])
    expect(found[1]?.title).toBe('Zombies, ms')
  })

  test('moving stays in the list', () => {
    expect(moved(['a', 'b', 'c'], 'b', -1)).toEqual(['b', 'a', 'c'])
    expect(moved(['a', 'b', 'c'], 'c', 1)).toEqual(['a', 'b', 'c'])
    expect(moved(['a'], 'x', 1)).toEqual(['a'])
  })

  test('are hidden, shown, moved, and as they came again', () => {
    const now = () => shown.value.map((track) => track.id)
    lineInfos.value = [
      info('zombies.tracked', 'cgroups'),
      info('blocked.tasks', 'tasks'),
      info('memory.available', 'bytes'),
    ]
    expect(now()).toEqual(['cores', 'average', 'processes', 'events', 'zombies', 'blocked'])
    setShown('average', false)
    setShown('memory', true)
    moveTrack('memory', -1)
    expect(now()).toEqual(['cores', 'processes', 'events', 'zombies', 'memory', 'blocked'])
    for (const id of now()) setShown(id, false)
    expect(now()).toEqual([])
    resetTracks()
    expect(now()).toEqual(['cores', 'average', 'processes', 'events', 'zombies', 'blocked'])
  })
})
