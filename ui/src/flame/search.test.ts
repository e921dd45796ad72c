import { describe, expect, it } from 'vitest'
import { compile, find, same, widest, type Test } from './search'
import { flatten } from './tree'

const flat = flatten({
  name: 'all',
  value: 100,
  children: [
    {
      name: 'kubelet',
      value: 60,
      children: [
        {
          name: 'mem_cgroup_iter',
          value: 50,
          module: '[kernel]',
          kernel: true,
          children: [{ name: 'mem_cgroup_iter', value: 40, module: '[kernel]', kernel: true }],
        },
      ],
    },
    { name: 'ray', value: 40, children: [{ name: 'a.b(c)', value: 10, module: 'libmem.so' }] },
  ],
})

const test = (asked: string): Test => {
  const compiled = compile(asked)
  if (typeof compiled === 'string') throw new Error(compiled)
  return compiled
}

describe('search', () => {
  it('counts a sample below several matches once', () => {
    expect(find(flat, test('MEM_cgroup'))).toMatchObject({ matches: 2, samples: 50 })
  })

  it('looks at modules too', () => {
    expect(find(flat, test('libmem'))).toMatchObject({ matches: 1, samples: 10 })
  })

  it('takes signs as they are, unless it is a regular expression', () => {
    expect(find(flat, test('a.b(c)'))).toMatchObject({ matches: 1 })
    expect(find(flat, test('mem.cgroup'))).toMatchObject({ matches: 0 })
    expect(find(flat, test('/mem.cgroup|ray/'))).toMatchObject({ matches: 3, samples: 90 })
    expect(compile('/(/')).toBe('not a regular expression')
  })

  it('finds nothing for nothing', () => {
    expect(find(flat, test(' '))).toMatchObject({ matches: 0, samples: 0 })
  })

  it('can stay below a frame', () => {
    const ray = flat.frame.findIndex((frame) => frame.name === 'ray')
    expect(find(flat, test('mem'), ray)).toMatchObject({ matches: 1, samples: 10 })
  })

  it('finds the same function elsewhere', () => {
    const at = flat.frame.findIndex((frame) => frame.name === 'mem_cgroup_iter')
    expect(same(flat, at)).toMatchObject({ matches: 2, samples: 50 })
  })

  it('brings the frame with most samples, by its whole name', () => {
    expect(flat.value[widest(flat, 'mem_cgroup_iter')]).toBe(50)
    expect(widest(flat, 'mem_cgroup')).toBe(-1)
  })
})
