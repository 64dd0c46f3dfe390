import { describe, expect, inject, test } from 'vitest';
import { ENGINE_MUTANTS } from './engine-mutants.js';
import { REPORT_MUTANTS } from './report-mutants.js';
import { runTests } from './run-tests.js';
import { STATEMENT_MUTANTS } from './statement-mutants.js';

const MUTANTS = [...ENGINE_MUTANTS, ...STATEMENT_MUTANTS, ...REPORT_MUTANTS];

describe.concurrent('the tests', () => {
  test.each(['engine', 'statements', 'reports'] as const)('pass on the program as it is (%s)', async (tests) => {
    expect(await runTests({ tests, patches: [] }, inject('databaseUrl'))).toBeNull();
  });

  test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))('notice when %s', async (_name, mutant) => {
    const caught = await runTests(mutant, inject('databaseUrl'));
    expect(caught, 'no test notices').not.toBeNull();
    console.info(`${mutant.name}\n    ${caught?.test}\n    ${caught?.message}`);
  });
});
