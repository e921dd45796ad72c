/** Which tracks have nothing to show: they are folded to one line. */

const LITTLE_PRESSURE = 0.05 // of the time
const LITTLE_CHANGE = 0.02 // of the highest value

/** Whether all lines of a track hardly change, or stay near zero where they are shares. */
export function isQuiet(lines: readonly (readonly (number | null)[])[], unit: string): boolean {
  return lines.every((line) => {
    let [least, most] = [Infinity, -Infinity]
    for (const value of line) {
      if (value === null) continue
      least = Math.min(least, value)
      most = Math.max(most, value)
    }
    if (most < least) return true // nothing was recorded
    return unit === 'share of time' ? most < LITTLE_PRESSURE : most - least <= most * LITTLE_CHANGE
  })
}
