/** What the heatmap shows, and in which colours. */

import { signal, type Signal } from '@preact/signals'
import { param, type Range } from '../state'
import type { Measure } from './scale'

const coloured = param('heat', 'count')

export const measure = (): Measure => (coloured.value === 'kernel' ? 'kernel' : 'count')

export function setMeasure(wanted: Measure): void {
  coloured.value = wanted
}

/** The time that is shown; null until something is selected. */
export const shown: Signal<Range | null> = signal(null)
