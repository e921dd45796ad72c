/** The filters that apply to everything, as chips. */
export function FilterBar() {
  return <div class="filters" />
}
