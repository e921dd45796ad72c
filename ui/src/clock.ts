/** A wall time of the recording, in UTC as the command line shows it. */
export function clock(time: number): string {
  return new Date(time).toISOString().slice(11, 23)
}
