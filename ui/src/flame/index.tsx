/** Flame graph. */
export function Flame() {
  return <section aria-label="Flame graph" />
}
