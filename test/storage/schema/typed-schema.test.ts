import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { OPTIONAL_FIELDS } from '../../../src/core/run-fields.js';
import { useStore } from '../../support/store.js';

const setup = useStore();

/** The type of the column of a field in PostgreSQL. Texts for people have the collation of the database. */
const COLUMN_TYPES = {
  code: 'text, compared byte by byte',
  text: 'text',
  'long text': 'text',
  number: 'double precision',
  time: 'timestamp with time zone',
  object: 'jsonb',
};

it('has a column of the right type for every optional field, also in the history and in reports', async () => {
  const columns = await setup.rows(sql<{ relation: string; column: string; type: string }>`
    SELECT relnamespace::regnamespace || '.' || relname AS relation, attname AS column, format_type(atttypid, atttypmod)
      || CASE WHEN attcollation = '"C"'::regcollation THEN ', compared byte by byte' ELSE '' END AS type
    FROM pg_class AS class JOIN pg_attribute ON attrelid = class.oid AND attnum > 0`);
  const views = ['runs', 'productive_runs', 'run_history'].map((view) => `scanfeed_reporting.${view}`);
  for (const relation of ['scanfeed.runs', 'scanfeed.run_history', ...views]) {
    const types = columns.filter((each) => each.relation === relation).map(({ column, type }) => [column, type]);
    expect({ relation, ...Object.fromEntries(types) }).toMatchObject({
      relation,
      ...Object.fromEntries(OPTIONAL_FIELDS.map(({ column, type }) => [column, COLUMN_TYPES[type]])),
    });
  }
});
