/** How much room there is. */

const LOW = 900 // pixels

/** Whether the screen is low: what stands above the flame graph is then drawn smaller. */
export const isLow = (): boolean => globalThis.innerHeight < LOW
