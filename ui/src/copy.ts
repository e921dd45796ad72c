/** Put a text on the clipboard, and say whether that worked. */
import { notice } from './state'

export async function copy(text: string, what: string): Promise<void> {
  try {
    // there is none on a page that came over plain HTTP from another machine
    await navigator.clipboard.writeText(text)
    notice(`Copied ${what}.`)
  } catch {
    notice(`The browser does not allow copying here; select ${what} by hand.`)
  }
}
