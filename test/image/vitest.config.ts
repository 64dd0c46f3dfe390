import { defineConfig } from 'vitest/config';

/** The image, which `.ci/image` has built before. */
export default defineConfig({
  test: {
    root: new URL('../../', import.meta.url).pathname,
    include: ['test/image/*.test.ts'],
    // A container starts more slowly than a process.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    expect: { requireAssertions: true },
    globalSetup: ['test/support/postgres/global-setup.ts', 'test/support/program/global-setup.ts'],
  },
});
