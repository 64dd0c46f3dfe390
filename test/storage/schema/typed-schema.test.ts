import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { TEST_SCHEMA, useStore } from '../../support/store.js';

const bench = useStore();

/** Columns of the tables declared in `schema.ts`, such as `runs.scan_id`; `runs.data?` may be null. */
async function declaredColumns(): Promise<string[]> {
  const text = await readFile(new URL('../../../src/storage/tables/schema.ts', import.meta.url), 'utf8');
  const columns = new Map<string, string[]>();
  for (const [, name = '', base = '', body = ''] of text.matchAll(
    /^interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}/gms,
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
  const declared = await declaredColumns();
  const tables = new Set(declared.map((name) => name.split('.')[0]));
  expect(tables.size).toBeGreaterThan(5);
  const stored = await bench.rows(sql<{ name: string }>`
    SELECT c.relname || '.' || a.attname || CASE WHEN a.attnotnull THEN '' ELSE '?' END AS name
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = ${TEST_SCHEMA}::regnamespace AND c.relkind = 'r' AND a.attnum > 0`);
  const ofTables = stored.map(({ name }) => name).filter((name) => tables.has(name.split('.')[0]));
  expect(declared.sort()).toEqual(ofTables.sort());
});
