import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';

const bench = useStore(useDatabase(MIGRATED));

interface Line {
  readonly relation: string;
  readonly about: string | null;
  readonly name: string;
  readonly type: string;
  readonly comment: string | null;
}

const COLUMNS = sql<Line>`
  SELECT c.relname AS relation, obj_description(c.oid, 'pg_class') AS about, a.attname AS name,
    format_type(a.atttypid, a.atttypmod) AS type, col_description(c.oid, a.attnum) AS comment
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
  WHERE c.relnamespace = 'scanfeed_reporting'::regnamespace
  ORDER BY c.relname COLLATE "C", a.attnum`;

const FUNCTIONS = sql<{ text: string }>`
  SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ') returns ' || pg_get_function_result(p.oid)
    || E'\n  ' || obj_description(p.oid, 'pg_proc') AS text
  FROM pg_proc AS p WHERE pronamespace = 'scanfeed_reporting'::regnamespace ORDER BY proname COLLATE "C"`;

it('the views and functions for reports match the contract when all migrations are applied', async () => {
  const lines = await bench.rows(COLUMNS);
  const functions = await bench.rows(FUNCTIONS);
  let text = '';
  let relation = '';
  for (const line of lines) {
    if (line.relation !== relation) text += `\n${line.relation}\n  ${line.about}\n\n`;
    relation = line.relation;
    text += `  ${line.name.padEnd(24)} ${line.type.padEnd(24)} ${line.comment}\n`;
  }
  for (const each of functions) text += `\n${each.text}\n`;
  await expect(text.trimStart()).toMatchFileSnapshot('contract.txt');
});

it('the schema of the reports contains only views with the rights of their owner when all migrations are applied', async () => {
  const found = await bench.rows(sql`
    SELECT relname FROM pg_class
    WHERE relnamespace = 'scanfeed_reporting'::regnamespace
      AND (relkind <> 'v' OR 'security_invoker=false' <> ALL (COALESCE(reloptions, '{}')))`);
  expect(found).toEqual([]);
});
