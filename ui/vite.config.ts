import { defineConfig } from 'vitest/config'

// The page is served by `nodescope serve` from the package: built next to its
// code, never committed. No source maps (size), hashed names (cached for ever).
export default defineConfig({
  build: {
    outDir: '../src/nodescope/web/page',
    emptyOutDir: true,
    target: 'es2022',
    sourcemap: false,
    modulePreload: { polyfill: false },
    // the policy of the server allows no data: fonts or scripts, so nothing is inlined
    assetsInlineLimit: 0,
  },
  // a slow machine is no failure
  test: { include: ['src/**/*.test.ts'], environment: 'node', testTimeout: 120_000 },
})
