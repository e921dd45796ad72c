/** The menu of downloads of the selection. */
export function Exports() {
  return <span />
}
