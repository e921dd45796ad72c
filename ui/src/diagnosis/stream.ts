/** Server-sent events of an answer that is long in the making: progress, then the result. */

export type Told = { event: string; data: string }

/** The whole events of a text, and the rest that is still to come. */
export function takeEvents(text: string): { events: Told[]; rest: string } {
  const blocks = text.replaceAll('\r\n', '\n').split('\n\n')
  const rest = blocks.pop() ?? ''
  return { events: blocks.map(readEvent).filter((told) => told.data !== ''), rest }
}

function readEvent(block: string): Told {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') event = value
    if (name === 'data') data.push(value)
  }
  return { event, data: data.join('\n') }
}

/** Each event of an answer, as it comes. */
export async function* eventsOf(response: Response): AsyncGenerator<Told> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (reader) {
    const { done, value } = await reader.read()
    if (done) return
    const { events, rest } = takeEvents(text + value)
    text = rest
    yield* events
  }
}
