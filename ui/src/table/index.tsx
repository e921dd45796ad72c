/** Functions. */
export function Table() {
  return <section aria-label="Functions" />
}
