/** Dark or light: as the system, or as the user chose on this machine. */
import { computed, effect, signal, type Signal } from '@preact/signals'

export type Theme = 'system' | 'dark' | 'light'

const KEY = 'nodescope.theme'
const system = matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(system.matches)
system.addEventListener('change', (event) => (systemDark.value = event.matches))

function stored(): Theme {
  const value = localStorage.getItem(KEY)
  return value === 'dark' || value === 'light' ? value : 'system'
}

export const theme: Signal<Theme> = signal(stored())
export const dark = computed(() =>
  theme.value === 'system' ? systemDark.value : theme.value === 'dark',
)

const cache = new Map<string, string>()
let probe: HTMLElement | undefined

// at once, not in an effect of a component: nothing may be painted in the other theme
effect(() => {
  document.documentElement.dataset.theme = dark.value ? 'dark' : 'light'
  localStorage.setItem(KEY, theme.value)
  cache.clear()
})

/**
 * A token of theme.css as a colour a canvas understands (`colour('accent')`).
 * Reads `dark`, so an effect that draws with it draws again in the other theme.
 */
export function colour(name: string): string {
  dark.value
  let value = cache.get(name)
  if (value === undefined) {
    probe ??= document.body.appendChild(document.createElement('i'))
    probe.hidden = true
    probe.style.color = `var(--${name})`
    value = getComputedStyle(probe).color
    cache.set(name, value)
  }
  return value
}
