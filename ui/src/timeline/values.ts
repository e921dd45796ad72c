/** Values of tracks as short text. */

const SCALES: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
]
const BYTES: [number, string][] = [
  [2 ** 40, 'TiB'],
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
]

/** `68,680`, `1.2 M`, `100 %`, `3.1 GiB`; a dash for what is not known. */
export function formatValue(value: number | null, unit: string): string {
  if (value === null || !Number.isFinite(value)) return '–'
  if (unit === 'share of time') return formatShare(value)
  if (unit === 'bytes') return scaled(value, BYTES, 'B')
  if (unit === 'bytes per second') return `${scaled(value, BYTES, 'B')}/s`
  const text = value >= 1e5 ? scaled(value, SCALES, '') : plain(value)
  return unit === 'ms' ? `${text} ms` : unit === 'per second' ? `${text}/s` : text
}

export function formatShare(share: number): string {
  const percent = share * 100
  return `${percent >= 9.95 || percent === 0 ? Math.round(percent) : Number(percent.toFixed(1))} %`
}

function plain(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(3)))
}

function scaled(value: number, scales: [number, string][], none: string): string {
  const found = scales.find(([scale]) => value >= scale)
  if (!found) return `${plain(value)} ${none}`.trim()
  return `${plain(value / found[0])} ${found[1]}`
}

/** A value in words; peaks are of different times, so they are named: they do not add up. */
export function sayValue(value: number | null, unit: string, peak: boolean): string {
  const said = `${formatValue(value, unit)}${unit === 'cores' ? ' cores' : ''}`
  return peak && value !== null ? `peak ${said}` : said
}
