import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../', import.meta.url)),
    // Not a `.test.ts`: the ordinary run leaves it out.
    include: ['test/mutants/all-mutants.ts'],
    globalSetup: ['test/mutants/database.ts'],
    maxConcurrency: availableParallelism(),
    testTimeout: 600_000,
    hookTimeout: 120_000,
  },
});
