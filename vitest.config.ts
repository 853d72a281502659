import { defineConfig } from 'vitest/config';

const countsFile = process.env['TEST_COUNTS'] ?? 'node_modules/.cache/reclaim-tests.json';

/**
 * Hours of outage, hundreds of reused pids, whole deployments: minutes each, so `npm run test:long` runs them by themselves
 * and `npm test` stays short. Continuous integration runs both.
 */
const long = [
  'test/alerts/fleet.test.ts',
  'test/alerts/threads.test.ts',
  'test/alerts/webhook.test.ts',
  'test/demo/situations.test.ts',
  'test/e2e/cli-run.test.ts',
  'test/e2e/crash.test.ts',
  'test/e2e/incident.test.ts',
  'test/e2e/journeys.test.ts',
  'test/host/dead-mount.test.ts',
  'test/host/kill-race.test.ts',
  'test/ops/backup.test.ts',
  'test/ops/package.test.ts',
  'test/ops/rolling.test.ts',
  'test/ops/serve.test.ts',
  'test/slack/delivery.test.ts',
  'test/slack/sockets.test.ts',
  'test/ssh/act-lost.test.ts',
  'test/ssh/lost.test.ts',
];

/** These look at this whole machine, or crowd it, so no two of them and nothing else may run beside them. */
const wholeMachine = [
  'test/e2e/**/*.test.ts',
  'test/demo/leftovers.test.ts',
  'test/memory/local.test.ts',
  'test/host/collect.test.ts',
];

export default defineConfig({
  test: {
    // Real servers and real processes need room; a test that hangs is still cut off.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // On a busy machine a real server can lose a race that says nothing about the code. Only CI tries again, once.
    retry: process.env['CI'] === undefined ? 0 : 1,
    // CI reads the counts from the file and prints them in one plain line.
    reporters: process.env['CI'] === undefined ? ['default'] : ['default', ['json', { outputFile: countsFile }]],
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: [...wholeMachine, ...long],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'whole-machine',
          include: wholeMachine,
          exclude: long,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'long', include: long, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
