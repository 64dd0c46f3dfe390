import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../', import.meta.url)),
    include: ['test/mutants/mutants.test.ts'],
    globalSetup: ['test/mutants/database.ts'],
    maxConcurrency: availableParallelism(),
    testTimeout: 600_000,
    hookTimeout: 120_000,
  },
});
