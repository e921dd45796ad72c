/** A plan and applied fixes, as the API answers. */

export type PlanStep = {
  kind: string
  target: { kind: string; name?: string }
  why: string
  changes: string[]
  command: string[]
  undo: string
}
export type Plan = {
  id: string
  expires: string
  steps: PlanStep[]
  refused: { target: { kind: string; name?: string }; reason: string }[]
  cannot: string[]
}
export type FixAnswer = {
  plan: Plan | null
  why: string | null
  command: string
  shown?: { title: string; expect: string[] }[]
}
export type Verdict = { verdict: string; because: string }
export type AppliedFix = {
  plan: string
  verdict: { mechanism?: Verdict; outcome?: Verdict } | null
  steps: { number: number; title: string; state: string; time_ms: number; error: string | null }[]
}
export type Fixes = { fixes: AppliedFix[]; why: string | null }

/** Whether a step of a fix is being taken or taken back. */
export const isWorking = (fix: AppliedFix): boolean =>
  fix.steps.some(({ state }) => state === 'under way' || state === 'being undone')

/** A command as one line for a shell: every word that a shell would change is quoted. */
export const joinCommand = (words: string[]): string =>
  words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ')
