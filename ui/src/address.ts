/**
 * The state of the page as the query of its address: what is in the address is
 * what the link reproduces. Pure: strings in, values out, and back.
 */
import { isEmpty, type Range } from './range'

export type Mode = 'flame' | 'table' | 'compare' | 'diagnosis' | 'facts'

export const MODES: readonly Mode[] = ['flame', 'table', 'compare', 'diagnosis', 'facts']

export type Filters = {
  cpu?: string
  pid?: string
  comm?: string
  cgroup?: string
  mode?: 'user' | 'kernel'
  frame?: string
  no_frame?: string
}

export const FILTER_NAMES = ['cpu', 'pid', 'comm', 'cgroup', 'mode', 'frame', 'no_frame'] as const

/** What the address holds; what is absent is the page's own choice. */
export type Address = {
  view: Range | null
  selection: Range | null
  filters: Filters
  mode: Mode
  /** values of the panels (search text, merge, ...), by name; see `param` in state.ts */
  params: Record<string, string>
}

/** Names that are not a panel's: a panel's parameter may not take one. */
export const RESERVED: ReadonlySet<string> = new Set([
  'view',
  'sel',
  'tab',
  'token',
  'm',
  ...FILTER_NAMES,
])

// a ten-thousandth of a millisecond is what a double can hold of a time of today
const written = (time: number): string => String(Math.round(time * 1e4) / 1e4)

export const writeRange = (range: Range): string => `${written(range.from)}~${written(range.to)}`

export function readRange(text: string | null): Range | null {
  const parts = (text ?? '').split('~')
  if (parts.length !== 2 || parts.some((part) => part.trim() === '')) return null
  const range = { from: Number(parts[0]), to: Number(parts[1]) }
  const sound = Number.isFinite(range.from) && Number.isFinite(range.to) && !isEmpty(range)
  return sound ? range : null
}

export function readAddress(query: string): Address {
  const search = new URLSearchParams(query)
  const filters: Filters = {}
  for (const name of FILTER_NAMES) {
    const value = search.get(name === 'mode' ? 'm' : name)
    if (!value) continue
    if (name !== 'mode') filters[name] = value
    else if (value === 'user' || value === 'kernel') filters.mode = value
  }
  const tab = search.get('tab')
  const params: Record<string, string> = {}
  for (const [name, value] of search) if (!RESERVED.has(name)) params[name] = value
  return {
    view: readRange(search.get('view')),
    selection: readRange(search.get('sel')),
    filters,
    mode: MODES.find((each) => each === tab) ?? 'flame',
    params,
  }
}

/** The query, with its leading `?`, or nothing when all is as it comes. */
export function writeAddress(address: Address): string {
  const search = new URLSearchParams()
  if (address.view) search.set('view', writeRange(address.view))
  if (address.selection) search.set('sel', writeRange(address.selection))
  for (const name of FILTER_NAMES) {
    const value = address.filters[name]
    if (value) search.set(name === 'mode' ? 'm' : name, value)
  }
  if (address.mode !== 'flame') search.set('tab', address.mode)
  for (const name of Object.keys(address.params).sort()) {
    if (!RESERVED.has(name)) search.set(name, address.params[name] ?? '')
  }
  const text = search.toString().replaceAll('%7E', '~').replaceAll('%2C', ',')
  return text ? `?${text}` : ''
}
