import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';

const bench = useStore(useDatabase(MIGRATED));

interface View {
  readonly name: string;
  readonly about: string;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly comment: string }[];
}

const VIEWS = sql<View>`
  SELECT c.relname AS name, obj_description(c.oid, 'pg_class') AS about,
    jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
      'comment', col_description(c.oid, a.attnum)) ORDER BY a.attnum) AS columns
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
  WHERE c.relnamespace = 'scanfeed_reporting'::regnamespace
  GROUP BY c.oid, c.relname ORDER BY c.relname COLLATE "C"`;

const HEAD = `# The views of scanfeed as sources of a dbt project: copy it into models/. Typed views of documents
# (document_<slug>) depend on your document types: add those you use, as \`scanfeed views list\` names them.
version: 2
sources:
  - name: scanfeed
    schema: scanfeed_reporting
    description: Data that scanfeed has stored from the delivery feed of the Document Recognition Service
    tables:
`;

/** In a quiet feed there are no new runs although the data is fresh; only this column shows the freshness. */
const FRESHNESS = `        # With several feeds, the freshest counts: name yours in a filter, such as "feed = 'default'".
        loaded_at_field: data_complete_as_of
        freshness:
          warn_after: {count: 10, period: minute}
          error_after: {count: 1, period: hour}
`;

it('docs/dbt/sources.yml matches the views when all migrations are applied', async () => {
  let text = HEAD;
  for (const { name, about, columns } of await bench.rows(VIEWS)) {
    text += `      - name: ${name}\n        description: ${JSON.stringify(about)}\n`;
    if (name === 'sync_status') text += FRESHNESS;
    text += '        columns:\n';
    for (const column of columns) {
      text += `          - name: ${column.name}\n            data_type: ${column.type}\n`;
      text += `            description: ${JSON.stringify(column.comment)}\n`;
    }
  }
  await expect(text).toMatchFileSnapshot('../../../docs/dbt/sources.yml');
});
