/** Lists of cores as the commands write them: `0-5,39`. */

/** The cores of a list, or null if it is not one. */
export function parseCpus(text: string): Set<number> | null {
  const cpus = new Set<number>()
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,5})(?:\s*-\s*(\d{1,5}))?\s*$/.exec(part)
    if (!match) return null
    const first = Number(match[1])
    const last = Number(match[2] ?? first)
    if (last < first) return null
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu)
  }
  return cpus
}

/** The shortest list of these cores. */
export function formatCpus(cpus: Iterable<number>): string {
  const sorted = [...new Set(cpus)].sort((a, b) => a - b)
  const parts: string[] = []
  for (let at = 0; at < sorted.length;) {
    let end = at
    while (sorted[end + 1] === (sorted[end] ?? 0) + 1) end++
    parts.push(end > at ? `${sorted[at]}-${sorted[end]}` : `${sorted[at]}`)
    at = end + 1
  }
  return parts.join(',')
}
