import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { fieldColumns, readView, useDocuments } from '../../support/reports.js';
import { useStore } from '../../support/store.js';

const setup = useStore();
const { feed, store, build, viewNames } = useDocuments(setup);
const HISTORY = 'document_rechnung_history';

/** Stores a later revision of `scan-1`. */
const correct = (revision: number, over: Record<string, unknown>) =>
  feed().commit([entryJson({ scanId: 'scan-1', revision, ...over })]);

describe('a typed view of history', () => {
  it('has the superseded revisions, so that one statement shows the corrections, when runs were corrected', async () => {
    await store({ nr: 'RE-1', betrag: raw('183.47') });
    await store({ nr: 'RE-2', betrag: 5 });
    await correct(2, { data: { nr: 'RE-1', betrag: raw('200.00') } });
    await correct(3, { data: { nr: 'RE-1', betrag: raw('436.30') } });
    await build();
    const rows = await setup.rows(sql`
      SELECT was.nr, was.revision AS was, now.revision AS now, (now.betrag - was.betrag)::text AS difference,
        was.superseded_at > was.synced_at AS in_order
      FROM scanfeed_reporting.document_rechnung_history AS was
      JOIN scanfeed_reporting.document_rechnung AS now USING (scan_id) ORDER BY was.revision`);
    expect(rows).toEqual([
      { nr: 'RE-1', was: 1, now: 3, difference: '252.83', in_order: true },
      { nr: 'RE-1', was: 2, now: 3, difference: '236.30', in_order: true },
    ]);
  });

  it('contains only completed revisions of its type when a correction changed status or type', async () => {
    await store({ betrag: 1 });
    await correct(2, { status: 'failed', data: undefined, failureReason: 'x' });
    await correct(3, { data: { betrag: 3 }, documentType: { slug: 'gutschrift', name: 'Gutschrift' } });
    await correct(4, { data: { betrag: 4 } });
    await build();
    expect(await readView(setup, HISTORY, ['revision', 'betrag'])).toEqual([{ revision: '1', betrag: '1' }]);
  });

  it('gets the columns of the view of current revisions when fields are new', async () => {
    await store({ betrag: 1 });
    await build();
    await correct(2, { data: { betrag: 2, neu: true } });
    await correct(3, { data: { betrag: 'drei', neu: false } });
    await build();
    expect(await fieldColumns(setup, HISTORY)).toEqual(await fieldColumns(setup, 'document_rechnung'));
    expect(await readView(setup, HISTORY, ['revision', 'betrag', 'betrag__text', 'neu', 'other_fields'])).toEqual([
      { revision: '1', betrag: '1', betrag__text: '1', neu: null, other_fields: null },
      { revision: '2', betrag: '2', betrag__text: '2', neu: 'true', other_fields: null },
    ]);
  });

  it('has arrays of objects in other_fields, and fields with the names of its columns as data_…, when documents have them', async () => {
    await store({ supersededAt: 'gestern', positionen: [{ menge: 1 }] });
    await build();
    await correct(2, { data: {} });
    expect(await readView(setup, HISTORY, ['data_superseded_at', 'other_fields'])).toEqual([
      { data_superseded_at: 'gestern', other_fields: '{"positionen": [{"menge": 1}]}' },
    ]);
  });

  it('has a name of its own when an array or a type has that name', async () => {
    await store({ n: 1 }, 'lieferschein history');
    await build();
    await store({ n: 1, history: [{ n: 2 }] }, 'lieferschein');
    await build();
    expect(await viewNames()).toEqual([
      'document_lieferschein_history',
      'document_lieferschein_history_history',
      'document_lieferschein',
      'document_lieferschein_2_history',
      'document_lieferschein_history_2',
    ]);
  });

  it('has a comment on each column when it is built', async () => {
    await store({ betrag: 1 });
    await build();
    const rows = await setup.rows(sql<{ column_name: string; description: string | null }>`
      SELECT column_name, description FROM scanfeed_reporting.columns WHERE view_name = ${HISTORY} ORDER BY position`);
    expect(rows.filter(({ description }) => description === null)).toEqual([]);
    expect(rows.map(({ column_name }) => column_name)).not.toContain('productive');
    expect(rows.slice(0, 3)).toEqual([
      { column_name: 'superseded_at', description: 'When the higher revision was stored, clock of this database' },
      { column_name: 'scan_id', description: expect.stringMatching(/^Identifier of the run/) },
      { column_name: 'revision', description: 'The revision that was replaced' },
    ]);
  });
});
