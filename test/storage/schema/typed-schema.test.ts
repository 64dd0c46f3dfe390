import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { OPTIONAL_FIELDS } from '../../../src/core/run-fields.js';
import { TEST_SCHEMA, useStore } from '../../support/store.js';

const bench = useStore();

/** Columns of the tables declared in `schema.ts`, such as `feeds.name`; `feeds.cursor?` may be null. */
async function declaredColumns(): Promise<string[]> {
  const text = await readFile(new URL('../../../src/storage/tables/schema.ts', import.meta.url), 'utf8');
  const columns = new Map<string, string[]>();
  for (const [, name = '', base = '', body = ''] of text.matchAll(
    /^interface (\w+)(?: extends (\w+)[^{\n]*)? \{\n(.*?)^\}/gms,
  )) {
    const own = [...body.matchAll(/^ {2}(\w+): (.*);$/gm)].map(
      ([, column, type]) => `${column}${type?.endsWith('| null') ? '?' : ''}`,
    );
    columns.set(name, [...own, ...(columns.get(base) ?? [])]);
  }
  const [, tables = ''] = /export interface ScanfeedSchema \{\n(.*?)^\}/ms.exec(text) ?? [];
  return [...tables.matchAll(/^ {2}(\w+): (\w+);$/gm)].flatMap(([, table, type = '']) =>
    (columns.get(type) ?? []).map((column) => `${table}.${column}`),
  );
}

it('declares every column of its tables, and which may be null, when all migrations are applied', async () => {
  const ofFields = OPTIONAL_FIELDS.map(({ column }) => `runs.${column}?`);
  const declared = [...new Set([...(await declaredColumns()), ...ofFields])];
  const tables = new Set(declared.map((name) => name.split('.')[0]));
  expect(tables.size).toBeGreaterThan(5);
  const stored = await bench.rows(sql<{ name: string }>`
    SELECT c.relname || '.' || a.attname || CASE WHEN a.attnotnull THEN '' ELSE '?' END AS name
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = ${TEST_SCHEMA}::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`);
  const ofTables = stored.map(({ name }) => name).filter((name) => tables.has(name.split('.')[0]));
  expect(declared.sort()).toEqual(ofTables.sort());
});

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
  const columns = await bench.rows(sql<{ relation: string; column: string; type: string }>`
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
