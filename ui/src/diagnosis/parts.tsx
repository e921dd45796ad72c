/** Small parts of a finding: a sentence, and a command to copy. */
import { copy } from '../copy'
import { visible } from '../flame/words'
import { piecesOf } from './prose'

/** A sentence of the report, its code as code. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {piecesOf(text).map((piece, place) =>
        piece.code ? <code key={place}>{visible(piece.text)}</code> : visible(piece.text),
      )}
    </>
  )
}

/** The same evidence in a terminal. */
export function Command({ text }: { text: string }) {
  return (
    <p class="command">
      <code>{visible(text)}</code>
      <button class="quiet" onClick={() => copy(text, 'the command')}>
        Copy
      </button>
    </p>
  )
}
