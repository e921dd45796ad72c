import { describe, expect, it } from 'vitest'
import { isWorking, joinCommand, type AppliedFix } from './fixdocument'

const fix = (...states: string[]): AppliedFix => ({
  plan: 'p',
  verdict: null,
  steps: states.map((state, at) => ({
    number: at + 1,
    title: 't',
    state,
    time_ms: 0,
    error: null,
  })),
})

describe('applied fixes', () => {
  it('are followed while a step is taken or taken back', () => {
    expect(isWorking(fix('applied', 'under way'))).toBe(true)
    expect(isWorking(fix('being undone', 'undone'))).toBe(true)
    expect(isWorking(fix('applied', 'undone', 'failed', 'not undone'))).toBe(false)
  })
})

describe('a command to copy', () => {
  it('leaves plain words as they are', () => {
    expect(joinCommand(['systemctl', 'stop', '--', 'a@1.service'])).toBe(
      'systemctl stop -- a@1.service',
    )
  })
  it('quotes what a shell would change', () => {
    expect(joinCommand(['rm', '--', "a b'c;$(x)\n"])).toBe(`rm -- 'a b'\\''c;$(x)\n'`)
    expect(joinCommand([''])).toBe("''")
  })
})
