/** What of the node's facts is shown first: what is not well. */
import type { Container, Unit, ZombieParent } from './document'

/** Why a unit is not well; empty if it is. */
export function troubleOf(unit: Unit): string {
  if (unit.active === 'failed') return 'failed'
  if (unit.result && unit.result !== 'success') return unit.result
  if ((unit.failures ?? 0) > 0 && (unit.successes ?? 1) === 0) return 'never succeeded'
  if ((unit.restarts ?? 0) > 0) return 'restarted'
  return ''
}

/** How many are not well, and of how many no state was seen: those may be either. */
export function healthOf(units: readonly Unit[]): string {
  if (units.length === 0) return ''
  const bad = units.filter((unit) => troubleOf(unit)).length
  const unseen = units.filter((unit) => unit.active == null && !troubleOf(unit)).length
  if (unseen === units.length) return `${units.length} known by their files; states not seen`
  const told = bad === 0 ? 'no trouble seen' : `${bad} in trouble`
  return `${units.length}, ${told}${unseen ? `; states of ${unseen} not seen` : ''}`
}

/** Those that are not well first, then by name. */
export function byTrouble(units: readonly Unit[]): Unit[] {
  const rank = (unit: Unit): number => (troubleOf(unit) ? 0 : 1)
  return [...units].sort((a, b) => rank(a) - rank(b) || a.unit.localeCompare(b.unit))
}

export type Group = { name: string; image: string; containers: Container[]; failed: number }

/** Containers of one name together: a loop makes many of them. The most numerous first. */
export function byName(containers: readonly Container[]): Group[] {
  const groups = new Map<string, Group>()
  for (const each of containers) {
    const name = each.name || each.id.slice(0, 12)
    const key = `${name}\n${each.image ?? ''}`
    const group = groups.get(key) ?? { name, image: each.image ?? '', containers: [], failed: 0 }
    group.containers.push(each)
    if ((each.exit_status ?? 0) !== 0) group.failed += 1
    groups.set(key, group)
  }
  return [...groups.values()].sort(
    (a, b) => b.failed - a.failed || b.containers.length - a.containers.length,
  )
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** `280 MiB`, as the commands write it */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}

/** Each parent once, most dying first, with the rows of what its cgroups pin. */
export function byParent(rows: ZombieParent[]): { parent: ZombieParent; pins: ZombieParent[] }[] {
  const parents = new Map<string, { parent: ZombieParent; pins: ZombieParent[] }>()
  for (const row of rows) {
    const known = parents.get(row.path) ?? { parent: row, pins: [] }
    if (row.held_bytes) known.pins.push(row)
    parents.set(row.path, known)
  }
  return [...parents.values()].sort((a, b) => (b.parent.dying ?? 0) - (a.parent.dying ?? 0))
}
