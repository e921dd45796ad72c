import { expect, test } from 'vitest'
import { piecesOf } from './prose'

test('what stands between backticks is code', () => {
  expect(piecesOf('stop it by `systemctl stop a`, then `b`')).toEqual([
    { text: 'stop it by ', code: false },
    { text: 'systemctl stop a', code: true },
    { text: ', then ', code: false },
    { text: 'b', code: true },
  ])
})

test('a backtick alone is text', () => {
  expect(piecesOf('a ` b')).toEqual([{ text: 'a ` b', code: false }])
  expect(piecesOf('')).toEqual([])
})
