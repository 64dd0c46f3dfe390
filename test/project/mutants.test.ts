import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ENGINE_MUTANTS } from '../mutants/engine-mutants.js';
import { REPORT_MUTANTS } from '../mutants/report-mutants.js';
import { STATEMENT_MUTANTS } from '../mutants/statement-mutants.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const mutants = [...ENGINE_MUTANTS, ...STATEMENT_MUTANTS, ...REPORT_MUTANTS];

test('every mutant can be made of the program as it is now', () => {
  const misfits = mutants.flatMap(({ name, patches }) =>
    patches.flatMap(({ file, find }) => {
      const times = readFileSync(root + file, 'utf8').split(find).length - 1;
      return times === 1 ? [] : [`${name}: ${file} has its text ${times} times, not once: ${find}`];
    }),
  );
  expect(misfits).toEqual([]);
});

test('mutants have names of their own', () => {
  const names = mutants.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
