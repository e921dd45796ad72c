/** Sentences of a report: what stands between backticks is code. */

export type Piece = { text: string; code: boolean }

/** The pieces of a sentence in order; a backtick without a partner is text. */
export function piecesOf(sentence: string): Piece[] {
  const found: Piece[] = []
  let from = 0
  for (const match of sentence.matchAll(/`([^`]+)`/g)) {
    found.push({ text: sentence.slice(from, match.index), code: false })
    found.push({ text: match[1] ?? '', code: true })
    from = match.index + match[0].length
  }
  found.push({ text: sentence.slice(from), code: false })
  return found.filter(({ text }) => text !== '')
}
