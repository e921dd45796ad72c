/** What the filters are called, and what may be typed into each. */
import type { Filters } from '../address'
import { formatCpus, parseCpus } from '../cpus'

export type FilterName = keyof Filters

export const TITLES: Record<FilterName, string> = {
  cpu: 'core',
  comm: 'process',
  pid: 'pid',
  cgroup: 'cgroup or pod',
  frame: 'frame',
  no_frame: 'not frame',
  mode: 'mode',
}

export const EXAMPLES: Record<FilterName, string> = {
  cpu: '0-5,39',
  comm: 'kubelet',
  pid: '812,4021',
  cgroup: '/kubepods/*',
  frame: 'mem_cgroup.*',
  no_frame: 'idle',
  mode: 'kernel',
}

/** What the server may be asked for suggestions by, where it may. */
export const SUGGESTED_BY: Partial<Record<FilterName, string>> = {
  cpu: 'cpu',
  comm: 'comm',
  pid: 'pid',
  cgroup: 'cgroup',
  frame: 'function',
  no_frame: 'function',
}

export type Checked = { value: string } | { problem: string }

/** The value as it is sent, or what is wrong with it. */
export function check(name: FilterName, typed: string): Checked {
  const text = typed.trim()
  if (text === '') return { problem: `type a ${TITLES[name]}, for example ${EXAMPLES[name]}` }
  if (name === 'cpu') {
    const cpus = parseCpus(text)
    return cpus
      ? { value: formatCpus(cpus) }
      : { problem: `“${text}” is no list of cores; write ${EXAMPLES.cpu}` }
  }
  if (name === 'pid') {
    const pids = text.split(',').map((each) => each.trim())
    if (pids.every((pid) => /^\d{1,9}$/.test(pid))) return { value: pids.join(',') }
    return { problem: `“${text}” are no process ids; write ${EXAMPLES.pid}` }
  }
  if (name === 'mode') {
    return text === 'user' || text === 'kernel'
      ? { value: text }
      : { problem: 'the mode is user or kernel' }
  }
  return { value: text }
}

/** A name as a pattern that means itself: names hold brackets, dots and stars. */
export const escaped = (name: string): string => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
