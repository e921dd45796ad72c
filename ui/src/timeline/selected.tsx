/** The selected span as text that can be edited. */
export function SelectedTime() {
  return <span class="selected-time" />
}
