/** The tracks of the timeline: which there are, which are shown, in which order. */
import { computed, signal, type ReadonlySignal, type Signal } from '@preact/signals'
import { param } from '../state'

/** A line the server can draw. */
export type LineInfo = { name: string; title: string; unit: string; group: string }

/** A row of the timeline; `lines` are those of one group and unit, on one scale. */
export type Track = { id: string; title: string; lines: LineInfo[] }

const OWN: Track[] = [
  { id: 'cores', title: 'Cores', lines: [] },
  { id: 'average', title: 'Node average', lines: [] },
  { id: 'processes', title: 'Processes', lines: [] },
  { id: 'events', title: 'Events', lines: [] },
]

const FIRST_SHOWN = ['cores', 'average', 'processes', 'events', 'zombies', 'pressure', 'blocked']

/** The lines of this recording; filled once the server told. */
export const lineInfos: Signal<LineInfo[]> = signal([])

export const tracks: ReadonlySignal<Track[]> = computed(() => [
  ...OWN,
  ...groupLines(lineInfos.value),
])

// the ids in order, joined by commas; none is written as a dash
const shownText = param('tracks')

export const shown: ReadonlySignal<Track[]> = computed(() => {
  const ids = shownText.value === '' ? FIRST_SHOWN : shownText.value.split(',')
  const known = new Map(tracks.value.map((track) => [track.id, track]))
  return ids.flatMap((id) => known.get(id) ?? [])
})

/** One track for each group and unit: values of different units share no scale. */
export function groupLines(infos: LineInfo[]): Track[] {
  const found = new Map<string, Track>()
  const firstUnit = new Map<string, string>()
  for (const info of infos) {
    if (!firstUnit.has(info.group)) firstUnit.set(info.group, info.unit)
    const first = firstUnit.get(info.group) === info.unit
    const id = first ? info.group : `${info.group}.${info.unit.replaceAll(/[^a-z0-9]+/gi, '_')}`
    const track = found.get(id) ?? { id, title: titleOf(info.group, first, info), lines: [] }
    track.lines.push(info)
    found.set(id, track)
  }
  return [...found.values()]
}

function titleOf(group: string, first: boolean, info: LineInfo): string {
  const title = group.charAt(0).toUpperCase() + group.slice(1)
  return first ? title : `${title}, ${info.unit}`
}

function write(ids: string[]): void {
  const known = new Set(tracks.peek().map((track) => track.id))
  const text = ids.join(',') || '-'
  shownText.value = text === FIRST_SHOWN.filter((id) => known.has(id)).join(',') ? '' : text
}

const ids = (): string[] => shown.peek().map((track) => track.id)

export function setShown(id: string, on: boolean): void {
  write(on ? [...ids().filter((each) => each !== id), id] : ids().filter((each) => each !== id))
}

/** Move a shown track up or down by one. */
export function moveTrack(id: string, by: 1 | -1): void {
  write(moved(ids(), id, by))
}

export function moved(list: string[], id: string, by: 1 | -1): string[] {
  const at = list.indexOf(id)
  const to = at + by
  if (at < 0 || to < 0 || to >= list.length) return list
  const copy = [...list]
  copy.splice(to, 0, ...copy.splice(at, 1))
  return copy
}

export function resetTracks(): void {
  shownText.value = ''
}
