import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Folders whose tests need no database; they start without one. */
const withoutDatabase = [
  'unit',
  'json',
  'sync',
  'service',
  'emulator',
  'observability',
  'settings',
  'simulation',
  'deployment',
].map((folder) => `test/${folder}/**/*.test.ts`);

export default defineConfig({
  test: {
    // Processes, not threads: a crash or a stuck handle stays within its file.
    pool: 'forks',
    // Files wait for PostgreSQL more than they compute, and the server allows 200 connections.
    maxWorkers: Math.min(8, Math.max(2, availableParallelism())),
    // Generous, for busy machines: tests wait for events, and a limit only ends what hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    retry: 0,
    // A test that asserts nothing cannot fail.
    expect: { requireAssertions: true },
    setupFiles: ['test/support/clean-environment.ts', 'test/support/canaries/watch.ts'],
    // Neither UTC nor a whole number of hours, so that local time shows wherever it slips in.
    env: { TZ: 'America/St_Johns' },
    projects: [
      { extends: true, test: { name: 'unit', include: withoutDatabase } },
      {
        extends: true,
        test: {
          name: 'database',
          include: ['test/**/*.test.ts'],
          // What is published has a run of its own (`npm run test:package`).
          // What is built before it is tried out has commands of its own.
          exclude: [...withoutDatabase, 'test/image/**', 'test/package/**'],
          globalSetup: ['test/support/postgres/global-setup.ts', 'test/support/program/global-setup.ts'],
        },
      },
    ],
  },
});
