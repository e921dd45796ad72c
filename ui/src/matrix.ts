/**
 * `application/x-nodescope-matrix`: a uint32 (little endian) with the length of
 * a JSON header, the header, then blocks of numbers at offsets that are
 * multiples of eight counted from the end of the header.
 */
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float32Array

export type MatrixHeader = {
  from_ms: number
  column_ms: number
  columns: number
  rows: (string | number)[]
  scale?: number
  /** false where the server had no time yet to read all of it */
  complete?: boolean
  blocks: { name: string; dtype: string; shape: number[]; offset: number; bytes: number }[]
}

export type Matrix = { header: MatrixHeader; blocks: Record<string, Numbers> }

const KINDS = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  float32: Float32Array,
} as const

export function decodeMatrix(buffer: ArrayBuffer): Matrix {
  const length = new DataView(buffer).getUint32(0, true)
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length))
  const header = JSON.parse(text) as MatrixHeader
  const start = 4 + length
  const blocks: Record<string, Numbers> = {}
  for (const { name, dtype, offset, bytes } of header.blocks) {
    const kind = KINDS[dtype as keyof typeof KINDS]
    if (!kind) throw new Error(`the matrix has numbers of an unknown kind, ${dtype}`)
    blocks[name] = new kind(buffer, start + offset, bytes / kind.BYTES_PER_ELEMENT)
  }
  return { header, blocks }
}
