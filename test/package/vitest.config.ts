import { defineConfig } from 'vitest/config';

/** The package as it would be published. */
export default defineConfig({
  test: {
    root: new URL('../../', import.meta.url).pathname,
    include: ['test/package/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { requireAssertions: true },
    globalSetup: 'test/package/global-setup.ts',
    setupFiles: ['test/support/clean-environment.ts'],
  },
});
