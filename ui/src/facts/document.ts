/** What `/api/facts` answers: the node as it was last seen before a moment. */

export type Nic = {
  name: string
  resets?: number | null
  driver?: string | null
  version?: string | null
  up?: boolean | null
  carrier?: boolean | null
}

export type Queue = {
  nic: string
  queue: number
  direction?: string | null
  irq?: number | null
  cpus: number[]
  /** for how many milliseconds its core did no packet work although it had to; null is not known */
  starved: number | null
}

export type Unit = {
  unit: string
  active?: string | null
  sub?: string | null
  result?: string | null
  restarts?: number | null
  failures?: number | null
  successes?: number | null
  file_state?: string | null
  preset?: string | null
}

export type Container = {
  id: string
  name?: string | null
  image?: string | null
  runtime?: string | null
  state?: string | null
  exit_status?: number | null
  restarts?: number | null
  cgroup?: string | null
}

export type Zombies = {
  tracked?: number | null
  visible?: number | null
  dying?: number | null
  /** when the counts above and the parents below were read: not at the same time */
  read_ms?: number | null
  parents_read_ms?: number | null
  /** a row for each kind of memory that a parent's dying cgroups pin */
  parents?: ZombieParent[]
}

export type ZombieParent = {
  path: string
  dying?: number | null
  /** false where the number is estimated */
  exact?: boolean | null
  kind?: string | null
  held_bytes?: number | null
}

export type Network = { over_ms: number; nics: Nic[]; queues: Queue[] }

export type Facts = {
  at_ms: number
  network: Network | null
  units: Unit[]
  containers: Container[]
  zombies: Zombies | null
}
