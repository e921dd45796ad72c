/** Which tracks are shown, and their order. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { moveTrack, resetTracks, setShown, shown, tracks } from './tracks'

export function TrackMenu() {
  const [open, setOpen] = useState(false)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!open) return
    const outside = (event: Event) => {
      if (!place.current?.contains(event.target as Node)) setOpen(false)
    }
    addEventListener('pointerdown', outside)
    return () => removeEventListener('pointerdown', outside)
  }, [open])
  const close = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return
    setOpen(false)
    place.current?.querySelector('button')?.focus()
    event.stopPropagation()
  }
  return (
    <div class="menu-place" ref={place} onKeyDown={close}>
      <button aria-expanded={open} aria-haspopup="true" onClick={() => setOpen(!open)}>
        Tracks
      </button>
      {open && <TrackList />}
    </div>
  )
}

function TrackList() {
  const hidden = tracks.value.filter((track) => !shown.value.includes(track))
  return (
    <div class="menu" role="group" aria-label="Tracks">
      {[...shown.value, ...hidden].map((track) => {
        const at = shown.value.indexOf(track)
        return (
          <div key={track.id}>
            <label>
              <input
                type="checkbox"
                checked={at >= 0}
                onChange={(event) => setShown(track.id, event.currentTarget.checked)}
              />
              {track.title}
            </label>
            {at >= 0 && (
              <span class="joined">
                <button
                  class="icon"
                  aria-label={`Move ${track.title} up`}
                  disabled={at === 0}
                  onClick={() => moveTrack(track.id, -1)}
                >
                  ↑
                </button>
                <button
                  class="icon"
                  aria-label={`Move ${track.title} down`}
                  disabled={at === shown.value.length - 1}
                  onClick={() => moveTrack(track.id, 1)}
                >
                  ↓
                </button>
              </span>
            )}
          </div>
        )
      })}
      <button class="quiet" onClick={resetTracks}>
        As they came
      </button>
    </div>
  )
}
