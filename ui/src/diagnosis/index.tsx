/** Diagnosis. */
export function Diagnosis() {
  return <section aria-label="Diagnosis" />
}
