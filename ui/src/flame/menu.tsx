/** What can be done with a frame: a menu at the pointer, or at the frame the keys are at. */

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

export interface Action {
  title: string
  run: () => void
}

interface Opened {
  x: number
  y: number
  label: string
  actions: Action[]
  onClose: () => void
}

export function Menu({ x, y, label, actions, onClose }: Opened) {
  const element = useRef<HTMLDivElement>(null)
  const returned = useRef(document.activeElement)
  useLayoutEffect(() => {
    const menu = element.current
    if (!menu) return
    const { width, height } = menu.getBoundingClientRect()
    menu.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`
    menu.style.top = `${Math.max(8, Math.min(y, innerHeight - height - 8))}px`
    menu.querySelector('button')?.focus()
  }, [x, y])
  useEffect(() => {
    const outside = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) onClose()
    }
    addEventListener('pointerdown', outside, true)
    return () => removeEventListener('pointerdown', outside, true)
  }, [onClose])
  const close = () => {
    onClose()
    if (returned.current instanceof HTMLElement) returned.current.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(element.current?.querySelectorAll('button') ?? [])]
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement)
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by) buttons[(at + by + buttons.length) % buttons.length]?.focus()
    else if (event.key === 'Escape' || event.key === 'Tab') close()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div class="frame-menu" ref={element} role="menu" aria-label={label} onKeyDown={onKeyDown}>
      <div class="mono frame-menu-name" role="presentation">
        {label}
      </div>
      {actions.map((action) => (
        <button
          key={action.title}
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            close()
            action.run()
          }}
        >
          {action.title}
        </button>
      ))}
    </div>
  )
}
