/** What the selection is compared with; in the link. */

import { computed } from '@preact/signals'
import { readRange, writeRange } from '../address'
import { param, type Range } from '../state'

const chosen = param('base')

/** The baseline that somebody chose; null is the server's own choice. */
export const baseline = computed(() => readRange(chosen.value))

export function setBaseline(range: Range | null): void {
  chosen.value = range ? writeRange(range) : ''
}

/** What the widths of the differential flame graph are. */
export const widths = param('widths', 'window')

/** Only what counts, or all that was tested. */
export const listed = param('changes', 'flagged')
