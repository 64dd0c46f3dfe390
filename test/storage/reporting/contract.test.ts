import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';

const setup = useStore(useDatabase(MIGRATED));

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

const FUNCTIONS = sql<{ signature: string; result: string; comment: string | null }>`
  SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ')' AS signature, pg_get_function_result(p.oid) AS result,
    obj_description(p.oid, 'pg_proc') AS comment
  FROM pg_proc AS p WHERE pronamespace = 'scanfeed_reporting'::regnamespace ORDER BY proname COLLATE "C"`;

const HEAD = `# Columns

The views of the schema \`scanfeed_reporting\`, which [reports](reporting.md) read. The view \`columns\` lists the same for your
database, with the [typed views](reporting.md#typed-views) of its documents. A test generates this page from the comments in the database.
`;

const cell = (comment: string | null) => (comment ?? '').replaceAll('|', '\\|');

it('the views and functions for reports match the contract when all migrations are applied', async () => {
  const lines = await setup.rows(COLUMNS);
  const functions = await setup.rows(FUNCTIONS);
  let text = HEAD;
  let relation = '';
  for (const line of lines) {
    if (line.relation !== relation)
      text += `\n## ${line.relation}\n\n${line.about}.\n\n| column | type | |\n|---|---|---|\n`;
    relation = line.relation;
    text += `| \`${line.name}\` | ${line.type} | ${cell(line.comment)} |\n`;
  }
  text += `\n## Functions\n\n| function | returns | |\n|---|---|---|\n`;
  for (const { signature, result, comment } of functions) {
    text += `| \`${signature}\` | ${result} | ${cell(comment)} |\n`;
  }
  await expect(text).toMatchFileSnapshot('../../../docs/columns.md');
});

it('the schema of the reports contains only views with the rights of their owner when all migrations are applied', async () => {
  const found = await setup.rows(sql`
    SELECT relname FROM pg_class
    WHERE relnamespace = 'scanfeed_reporting'::regnamespace
      AND (relkind <> 'v' OR 'security_invoker=false' <> ALL (COALESCE(reloptions, '{}')))`);
  expect(found).toEqual([]);
});
