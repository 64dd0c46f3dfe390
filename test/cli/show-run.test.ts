import { expect, it } from 'vitest';
import { describeRun } from '../../src/cli/terminal/show-run.js';
import { OPTIONAL_FIELDS } from '../../src/core/run-fields.js';
import { entryJson } from '../support/entries.js';
import { rawRun } from '../support/pages.js';

/** The command has an option that shows the markdown alone. */
const SHOWN = OPTIONAL_FIELDS.filter(({ field }) => field !== 'markdown');

it('shows every optional field of a run', () => {
  const values = SHOWN.map(({ field, type }) => [field, type === 'object' ? { of: field } : `the ${field}`]);
  const shown = describeRun(rawRun(entryJson(Object.fromEntries(values))));
  for (const { field, type } of SHOWN) expect(shown).toContain(type === 'object' ? `"${field}"` : `the ${field}`);
});
