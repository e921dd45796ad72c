/** Heatmap of the selection. */
export function Heatmap() {
  return <section aria-label="Heatmap of the selection" />
}
