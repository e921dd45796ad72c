/**
 * Colours of frames. Kernel, programs and groups differ in brightness as well as in hue;
 * comparisons run from blue (less) to orange (more), which every kind of eye tells apart.
 */

import type { Frame } from './tree'

export type Colour = readonly [number, number, number]

export interface Paint {
  fill: string
  ink: string
}

const SHADES = 6
// Pure, because only then one of the two has a contrast of 4.5 to every colour.
const DARK_INK = '#000000'
const LIGHT_INK = '#ffffff'

const KERNEL: readonly [Colour, Colour] = [
  [226, 98, 84],
  [240, 132, 112],
]
const PROGRAM: readonly [Colour, Colour] = [
  [243, 178, 76],
  [250, 208, 120],
]
const GROUP: readonly [Colour, Colour] = [
  [139, 150, 170],
  [160, 169, 186],
]

export const css = ([red, green, blue]: Colour): string =>
  `rgb(${Math.round(red)} ${Math.round(green)} ${Math.round(blue)})`

export function mix(one: Colour, other: Colour, part: number): Colour {
  return [
    one[0] + (other[0] - one[0]) * part,
    one[1] + (other[1] - one[1]) * part,
    one[2] + (other[2] - one[2]) * part,
  ]
}

/** Relative luminance, as WCAG defines it. */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Text on a colour: dark or light, whichever is easier to read. */
export function inkOn(colour: Colour): string {
  return luminance(colour) > 0.179 ? DARK_INK : LIGHT_INK
}

const paintOf = (colour: Colour): Paint => ({ fill: css(colour), ink: inkOn(colour) })

const shaded = ([one, other]: readonly [Colour, Colour]): Paint[] =>
  Array.from({ length: SHADES }, (_, at) => paintOf(mix(one, other, at / (SHADES - 1))))

const PAINTS = { kernel: shaded(KERNEL), program: shaded(PROGRAM), group: shaded(GROUP) }

/** A number of a text that is the same everywhere and tells neighbours apart (FNV-1a). */
export function hash(text: string): number {
  let number = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) {
    number = Math.imul(number ^ text.charCodeAt(at), 0x01000193)
  }
  return number >>> 0
}

/** Kernel red, programs amber, processes and other groups slate; shades tell names apart. */
export function plainPaint(frame: Frame): Paint {
  const kind = frame.kernel === undefined ? 'group' : frame.kernel ? 'kernel' : 'program'
  return PAINTS[kind][hash(frame.name) % SHADES] as Paint
}

const LESS: Colour = [49, 119, 199]
const MORE: Colour = [230, 126, 20]
const SAME = { dark: [108, 108, 120] as Colour, light: [214, 212, 218] as Colour }
const STEPS = 12

const scaleOf = (same: Colour): Paint[] =>
  Array.from({ length: 2 * STEPS + 1 }, (_, at) => {
    const part = (at - STEPS) / STEPS
    return paintOf(mix(same, part < 0 ? LESS : MORE, Math.abs(part)))
  })

const CHANGES = { dark: scaleOf(SAME.dark), light: scaleOf(SAME.light) }

/**
 * How far a share moved, from -1 (gone) to 1 (new): the difference over the sum, so that
 * doubling and halving look alike.
 */
export function change(now: number, before: number): number {
  return now + before > 0 ? (now - before) / (now + before) : 0
}

/** The colour of a change between -1 and 1. */
export function changePaint(moved: number, theme: 'dark' | 'light'): Paint {
  const step = Math.round(Math.max(-1, Math.min(1, moved)) * STEPS)
  return CHANGES[theme][step + STEPS] as Paint
}
