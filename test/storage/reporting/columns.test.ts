import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { entryJson } from '../../support/entries.js';
import { useDocuments } from '../../support/reports.js';
import { useStore } from '../../support/store.js';

const setup = useStore();
const { feed, store, build } = useDocuments(setup);

interface Column {
  readonly view_name: string;
  readonly column_name: string;
  readonly json_path: string | null;
}

const columnsWithPath = () =>
  setup.rows(sql<Column>`
    SELECT view_name, column_name, json_path FROM scanfeed_reporting.columns
    WHERE json_path IS NOT NULL ORDER BY view_name, position`);

const DOCUMENT = {
  betrag: 1.5,
  lieferant: { ustId: 'DE1', 'a "b"\\': 'x' },
  '$.*[0]': true,
  tags: [1, 'zwei'],
  positionen: [{ menge: 2, 'chargen liste': [{ nr: { x: 'a' } }, { nr: { x: 'b' } }] }],
};

it('columns has the type, the field and the comment of each column of a typed view when it is built', async () => {
  await store(DOCUMENT);
  await build();
  const rows = await setup.rows(sql`
    SELECT * FROM scanfeed_reporting.columns
    WHERE view_name = 'document_rechnung' AND column_name IN ('productive', 'lieferant_ust_id') ORDER BY position`);
  expect(rows).toEqual([
    {
      view_name: 'document_rechnung',
      column_name: 'productive',
      position: 6,
      data_type: 'boolean',
      document_type_slug: 'rechnung',
      json_path: null,
      description: 'true: the run is to be processed productively, as in productive_runs',
    },
    {
      view_name: 'document_rechnung',
      column_name: 'lieferant_ust_id',
      position: expect.any(Number),
      data_type: 'text',
      document_type_slug: 'rechnung',
      json_path: '$."lieferant"."ustId"',
      description: 'Field lieferant → ustId',
    },
  ]);
});

it('columns has paths that lead to the values of the fields when keys contain any characters', async () => {
  await store(DOCUMENT);
  await feed().commit([entryJson({ scanId: 'scan-1', revision: 2, data: DOCUMENT })]);
  await build();
  const columns = await columnsWithPath();
  expect(columns.map(({ json_path }) => json_path)).toContain('$."positionen"[*]."chargen liste"[*]."nr"."x"');
  expect(columns.map(({ view_name }) => view_name)).toContain('document_rechnung_history');
  for (const { view_name, column_name, json_path } of columns) {
    const byPath = await setup.rows(sql`
      SELECT value FROM scanfeed_reporting.runs, jsonb_path_query(data, ${json_path}::jsonpath) AS value`);
    const byColumn = await setup.rows(sql`
      SELECT to_jsonb(${sql.ref(column_name)}) AS value FROM ${sql.id('scanfeed_reporting', view_name)} ORDER BY ${sql.ref(
        view_name.includes('positionen') ? 'position' : 'scan_id',
      )}`);
    expect({ json_path, values: byPath }).toEqual({ json_path, values: byColumn });
  }
});

it('columns has each column of the other views when all migrations are applied', async () => {
  const rows = await setup.rows(sql`
    SELECT c.table_name, c.column_name FROM information_schema.columns AS c
    LEFT JOIN scanfeed_reporting.columns AS known ON known.view_name = c.table_name
      AND known.column_name = c.column_name AND known.position = c.ordinal_position
    WHERE c.table_schema = 'scanfeed_reporting' AND (known.description IS NULL OR known.document_type_slug IS NOT NULL)`);
  expect(rows).toEqual([]);
});

it('columns has no column of another schema when a view there has the same name', async () => {
  await store(DOCUMENT);
  await build();
  const before = await columnsWithPath();
  await setup.rows(sql`CREATE VIEW public.document_rechnung AS SELECT 1 AS betrag`);
  expect(await columnsWithPath()).toEqual(before);
  await setup.rows(sql`DROP VIEW public.document_rechnung`);
});
