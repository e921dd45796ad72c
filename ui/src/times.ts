/**
 * Wall times as text and back, in UTC (as the commands print them) or in the
 * zone of the browser, down to the microsecond.
 */
import type { Range } from './range'

export type Zone = 'utc' | 'local'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const two = (value: number): string => String(value).padStart(2, '0')

/** Minutes east of UTC at this time. */
function offset(time: number, zone: Zone): number {
  return zone === 'utc' ? 0 : -new Date(time).getTimezoneOffset()
}

/** The clock of the zone as if it were UTC, so that one arithmetic serves both. */
const shifted = (time: number, zone: Zone): number => time + offset(time, zone) * MINUTE

/** `2026-03-01` */
export function formatDate(time: number, zone: Zone): string {
  const date = new Date(shifted(time, zone))
  const year = String(date.getUTCFullYear()).padStart(4, '0')
  return `${year}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`
}

/** `12:30:05`, with `digits` of the second's fraction: `12:30:05.250` */
export function formatClock(time: number, zone: Zone, digits = 0): string {
  // cut, not rounded: a clock never shows a second that has not come
  const scale = 10 ** digits
  const ticks = Math.floor((shifted(time, zone) * scale) / SECOND + 1e-4)
  const seconds = Math.floor(ticks / scale)
  const fraction = digits ? `.${String(ticks - seconds * scale).padStart(digits, '0')}` : ''
  const date = new Date(seconds * SECOND)
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}${fraction}`
}

/** `UTC`, or what is ahead of it: `+02:00`. */
export function zoneName(time: number, zone: Zone): string {
  if (zone === 'utc') return 'UTC'
  const minutes = offset(time, zone)
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

/** `12:30:05.250 UTC` */
export const formatMoment = (time: number, zone: Zone, digits = 0): string =>
  `${formatClock(time, zone, digits)} ${zoneName(time, zone)}`

/** `2026-03-01 12:30:05 UTC` */
export const formatTime = (time: number, zone: Zone, digits = 0): string =>
  `${formatDate(time, zone)} ${formatMoment(time, zone, digits)}`

/** The digits of a second that tell two neighbouring pixels apart. */
export function digitsFor(perPixel: number): number {
  if (perPixel >= 200) return 0
  if (perPixel >= 0.2) return 3
  return 6
}

/** A length of time with its two largest units: `2 h 5 min`, `12.5 s`, `250 ms`. */
export function formatLength(length: number): string {
  if (length < 1) return `${trimmed(length * 1000, 0)} µs`
  if (length < SECOND) return `${trimmed(length, length < 10 ? 2 : 0)} ms`
  if (length < MINUTE) return `${trimmed(length / SECOND, length < 10 * SECOND ? 2 : 1)} s`
  if (length < HOUR) return pair(length, MINUTE, 'min', SECOND, 's')
  if (length < DAY) return pair(length, HOUR, 'h', MINUTE, 'min')
  return pair(length, DAY, 'd', HOUR, 'h')
}

const trimmed = (value: number, digits: number): string => String(Number(value.toFixed(digits)))

function pair(length: number, large: number, name: string, small: number, other: string): string {
  const parts = Math.round(length / small)
  const each = large / small
  const rest = parts % each
  return `${Math.floor(parts / each)} ${name}${rest ? ` ${rest} ${other}` : ''}`
}

const STEPS = [
  ...[1, 10, 100].flatMap((scale) => [1, 2, 5].map((each) => (each * scale) / 1000)),
  ...[1, 10, 100].flatMap((scale) => [1, 2, 5].map((each) => each * scale)),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12].map((each) => each * HOUR),
  ...[1, 2, 7, 14, 28, 91, 182, 365, 1825, 3650, 18250].map((each) => each * DAY),
]

export type Tick = { time: number; label: string; date: boolean }

/** Round times across the range, at least `apart` pixels from each other. */
export function ticks(range: Range, width: number, zone: Zone, apart = 96): Tick[] {
  const span = range.to - range.from
  if (!(span > 0) || width <= 0) return []
  const least = (span / width) * apart
  const step = STEPS.find((each) => each >= least) ?? 36500 * DAY
  const shift = offset(range.from, zone) * MINUTE
  const digits = step >= SECOND ? 0 : step >= 1 ? 3 : 6
  const found: Tick[] = []
  const first = Math.ceil((range.from + shift) / step)
  const last = Math.floor((range.to + shift) / step)
  for (let at = first; at <= last; at++) {
    const time = at * step - shift
    const midnight = (at * step) % DAY === 0
    const label = midnight ? formatDate(time, zone) : clockLabel(time, zone, step, digits)
    found.push({ time, label, date: midnight })
  }
  return found
}

const clockLabel = (time: number, zone: Zone, step: number, digits: number): string =>
  step >= MINUTE ? formatClock(time, zone).slice(0, 5) : formatClock(time, zone, digits)

const STAMP =
  /^(?:(\d{4})-(\d\d)-(\d\d)(?:[T ]+|$))?(?:(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?$/i
const LENGTH = /^([+-])\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?$/i
const UNITS: Record<string, number> = { ms: 1, s: SECOND, m: MINUTE, min: MINUTE, h: HOUR, d: DAY }

/**
 * A typed time: `2026-03-01 12:30:05.25`, a clock alone (on the day of
 * `reference`), or `+30s`, `-2min` from `reference`. Null if it is none.
 */
export function parseTime(text: string, zone: Zone, reference: number): number | null {
  const trimmedText = text.trim()
  const relative = LENGTH.exec(trimmedText)
  if (relative) {
    const length = Number(relative[2]) * (UNITS[(relative[3] ?? 's').toLowerCase()] ?? SECOND)
    return reference + (relative[1] === '-' ? -length : length)
  }
  const match = STAMP.exec(trimmedText)
  if (!match || trimmedText === '') return null
  const [, year, month, day, hour, minute, second, fraction, named] = match
  const today = new Date(shifted(reference, zone))
  const date = year
    ? Date.UTC(Number(year), Number(month) - 1, Number(day))
    : Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate())
  if (year && new Date(date).getUTCDate() !== Number(day)) return null
  if (Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59 || Number(second ?? 0) > 59) return null
  const clock =
    Number(hour ?? 0) * HOUR + Number(minute ?? 0) * MINUTE + Number(second ?? 0) * SECOND
  const local = date + clock + (fraction ? Number(`0.${fraction}`) * SECOND : 0)
  return (
    local -
    (named ? namedOffset(named) : offset(local - offset(local, zone) * MINUTE, zone)) * MINUTE
  )
}

function namedOffset(name: string): number {
  const match = /^([+-])(\d\d):?(\d\d)$/.exec(name)
  if (!match) return 0
  const minutes = Number(match[2]) * 60 + Number(match[3])
  return match[1] === '-' ? -minutes : minutes
}
