/** Node facts. */
export function Facts() {
  return <section aria-label="Node facts" />
}
