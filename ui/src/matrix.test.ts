import { expect, test } from 'vitest'
import { decodeMatrix } from './matrix'

function encode(header: object, payload: Uint8Array): ArrayBuffer {
  let text = JSON.stringify(header)
  text += ' '.repeat((8 - ((4 + text.length) % 8)) % 8)
  const buffer = new ArrayBuffer(4 + text.length + payload.length)
  new DataView(buffer).setUint32(0, text.length, true)
  new Uint8Array(buffer).set(new TextEncoder().encode(text), 4)
  new Uint8Array(buffer).set(payload, 4 + text.length)
  return buffer
}

const shared = { from_ms: 5, column_ms: 1000, columns: 3, rows: [0, 1] }

test('blocks of bytes and of wider numbers', () => {
  const payload = new Uint8Array(8 + 16)
  payload.set([1, 2, 3, 4, 5, 255])
  payload.set(new Uint8Array(new Uint32Array([7, 8, 1 << 20]).buffer), 8)
  const blocks = [
    { name: 'peak', dtype: 'uint8', shape: [2, 3], offset: 0, bytes: 6 },
    { name: 'counts', dtype: 'uint32', shape: [3], offset: 8, bytes: 12 },
  ]
  const matrix = decodeMatrix(encode({ ...shared, blocks }, payload))
  expect(matrix.header.rows).toEqual([0, 1])
  expect([...(matrix.blocks.peak ?? [])]).toEqual([1, 2, 3, 4, 5, 255])
  expect([...(matrix.blocks.counts ?? [])]).toEqual([7, 8, 1 << 20])
})

test('numbers of an unknown kind are refused by name', () => {
  const blocks = [{ name: 'peak', dtype: 'object', shape: [1], offset: 0, bytes: 8 }]
  expect(() => decodeMatrix(encode({ ...shared, blocks }, new Uint8Array(8)))).toThrow('object')
})
