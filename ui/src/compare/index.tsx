/** Comparison. */
export function Compare() {
  return <section aria-label="Comparison" />
}
