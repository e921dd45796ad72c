/** The timeline of the recording. */
export function Timeline() {
  return <section aria-label="Timeline" class="timeline" />
}
