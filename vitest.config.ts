import { defineConfig } from 'vitest/config';

const countsFile = 'node_modules/.cache/reclaim-tests.json';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Real servers and real processes need room; a test that hangs is still cut off.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    // CI reads the counts from the file and prints them in one plain line.
    reporters: process.env['CI'] === undefined ? ['default'] : ['default', ['json', { outputFile: countsFile }]],
  },
});
