/** Names as text that can do no harm, and numbers as people read them. */

const LONGEST = 512
// Controls, format characters (they turn text around), surrogates, line separators.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu
const PLAIN = /^[\x20-\x7e]*$/

/** The text with everything that is not a visible character written out, as `\x1b`. */
export function visible(text: string): string {
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text
  return PLAIN.test(short) ? short : short.replace(HIDDEN, spelled)
}

function spelled(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`
}

/**
 * A visible name in at most `room` characters. Of a Go function the package's path goes
 * first: `syncPod` tells more than `k8s.io/kubern…`.
 */
export function fit(name: string, room: number): string {
  if (name.length <= room) return name
  if (room < 2) return ''
  const own = name.slice(name.lastIndexOf('/') + 1)
  const kept = own !== '' && own.length < name.length ? own : name
  return kept.length <= room ? kept : `${kept.slice(0, room - 1)}…`
}

/** A regular expression, of Python and of JavaScript, that only this name fits. */
export function exactly(name: string): string {
  return `^${name.replace(/[\\^$.*+?()[\]{}|/#&~ -]/g, '\\$&')}$`
}

/** `6.5 %`; what is not zero never reads as zero. */
export function percent(ratio: number): string {
  if (ratio > 0 && ratio < 0.0005) return '<0.1 %'
  return `${(100 * ratio).toFixed(1)} %`
}

const GROUPED = new Intl.NumberFormat('en')

/** `12,345`; `0.4` for what is an average. */
export function count(value: number): string {
  return GROUPED.format(value < 10 ? Math.round(value * 10) / 10 : Math.round(value))
}

/** The interval that holds the true share with 95 % certainty (Wilson), from 0 to 1. */
export function certainty(part: number, whole: number): [number, number] {
  if (whole <= 0) return [0, 1]
  const z = 1.96
  const share = Math.min(part / whole, 1)
  const middle = share + (z * z) / (2 * whole)
  const reach = z * Math.sqrt((share * (1 - share)) / whole + (z * z) / (4 * whole * whole))
  const scale = 1 + (z * z) / whole
  return [Math.max(0, (middle - reach) / scale), Math.min(1, (middle + reach) / scale)]
}

/** `×9.3`, `×120`; without a baseline there is no factor. */
export function factor(now: number, before: number): string {
  if (before <= 0) return '–'
  const ratio = now / before
  return `×${ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)}`
}
