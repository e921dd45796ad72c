/** What belongs to the flame graphs in the link: search, merge, direction, zoom. */

import { computed, signal, type Signal } from '@preact/signals'
import { param } from '../state'

/** Text that the flame graphs and the table look for. */
export const search = param('search')

/** A function to bring into sight as soon as its samples are there; not in the link. */
export const sought: Signal<{ name: string } | null> = signal(null)

export const MERGES = [
  { value: 'comm', title: 'process' },
  { value: 'cpu', title: 'core' },
  { value: 'cgroup', title: 'cgroup' },
  { value: 'pod', title: 'pod' },
  { value: 'none', title: 'nothing' },
] as const

export const merge = param('merge', 'comm')
export const direction = param('stacks', 'callers') // or `callees`: from the innermost outwards
export const inverted = computed(() => direction.value === 'callees')

/** The names from below the root to the frame zoomed to, as the server takes them. */
export const zoom = param('zoom')
export const BETWEEN = '\u001f'
export const zoomPath = computed(() => (zoom.value === '' ? [] : zoom.value.split(BETWEEN)))
