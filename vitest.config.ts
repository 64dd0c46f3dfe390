import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Tests of the whole program as a process, against PostgreSQL and an emulated or scripted service. */
const e2e = ['test/e2e/**/*.test.ts'];
/** Tests that need tools besides Node: Helm, promtool, Spin, Chromium. */
const tools = ['test/deployment/**/*.test.ts', 'test/model/**/*.test.ts', 'test/observability/status-page.test.ts'];
/** What has to be built before it is tested has commands of its own. */
const builtFirst = ['test/image/**', 'test/package/**'];

/**
 * A worker runs many files, and imports the modules of the program once. Those that wait for PostgreSQL leave a core to
 * another; the server allows 200 connections.
 */
const inOneProcess = {
  isolate: false,
  maxWorkers: Math.min(8, availableParallelism() + 1),
  sequence: { groupOrder: 0 },
  // Much is allocated for a short time, and the workers keep all cores busy.
  execArgv: ['--max-semi-space-size=64', '--single-threaded-gc'],
};
/** Each file runs several programs that compute. */
const withPrograms = { maxWorkers: Math.min(8, Math.max(2, availableParallelism())), sequence: { groupOrder: 1 } };

export default defineConfig({
  test: {
    // Processes, not threads: a crash or a stuck handle stays within its file.
    pool: 'forks',
    // Generous, for busy machines: tests wait for events, and a limit only ends what hangs.
    testTimeout: process.env.TEST_THOROUGH === '1' ? 600_000 : 60_000,
    hookTimeout: 60_000,
    retry: 0,
    // A test that asserts nothing cannot fail. What is polled for gets half the time of a test.
    expect: { requireAssertions: true, poll: { timeout: 30_000 } },
    setupFiles: ['clean-environment.ts', 'random-seed.ts', 'canaries/watch.ts'].map((file) => `test/support/${file}`),
    // Neither UTC nor a whole number of hours, so that local time shows wherever it slips in.
    env: { TZ: 'America/St_Johns' },
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: [...tools, ...e2e, ...builtFirst],
          ...inOneProcess,
          globalSetup: 'test/support/postgres/global-setup.ts',
        },
      },
      { extends: true, test: { name: 'tools', include: tools, ...withPrograms } },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: e2e,
          ...withPrograms,
          globalSetup: ['test/support/postgres/global-setup.ts', 'test/support/program/global-setup.ts'],
        },
      },
    ],
  },
});
