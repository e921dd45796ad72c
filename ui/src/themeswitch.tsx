import { dark, theme } from './theme'

/** One button between dark and light. */
export function ThemeSwitch() {
  const other = dark.value ? 'light' : 'dark'
  return (
    <button
      class="quiet icon theme"
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
      onClick={() => (theme.value = other)}
    >
      <span aria-hidden="true">◐</span>
    </button>
  )
}
