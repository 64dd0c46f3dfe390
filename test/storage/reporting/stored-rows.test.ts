import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { defineViews } from '../../../src/storage/reporting/build-views.js';
import { forgetProgress } from '../../../src/storage/reporting/new-documents.js';
import { storeNextRows } from '../../../src/storage/reporting/stored-rows.js';
import { choicesFrom } from '../../simulation/random-choices.js';
import { entryJson } from '../../support/entries.js';
import { documentOf, RandomWorld } from '../../support/random-world.js';
import { emptyReports, fieldColumns, useDocuments } from '../../support/reports.js';
import { tables, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

const setup = useStore();
const { feed, store, build } = useDocuments(setup);
const VIEW = 'document_rechnung';
const FEEDS = ['north', 'south'];
const STEPS = 40;

/** Has the views of documents of the type `rechnung` keep their rows in tables. */
const storeRows = (isWanted = true) =>
  setup.rows(
    sql`UPDATE ${tables.reportViews} SET stores_rows = ${isWanted} WHERE name LIKE 'document_rechnung%' AND history_of IS NULL`,
  );
const storedViews = async () => (await defineViews(setup.connection)).filter(({ view }) => view.storesRows);
/** Stores the rows of the next batch of changes of each view. */
const storeBatch = async () => {
  for (const view of await storedViews()) await storeNextRows(setup.connection, view);
};
const content = async (query: string) => {
  const rows = await setup.rows(
    sql<{ row: string }>`SELECT to_jsonb(said)::text AS row FROM (${sql.raw(query)}) AS said ORDER BY 1`,
  );
  return rows.map(({ row }) => row);
};
/** Expects the views to say what the documents say. */
async function expectExact(context: string): Promise<void> {
  for (const { view, rows } of await storedViews()) {
    expect(await content(`SELECT * FROM scanfeed_reporting.${view.name}`), `${view.name} ${context}`).toEqual(
      await content(rows),
    );
  }
}
const inTables = async () => {
  const views = await storedViews();
  return (
    await Promise.all(views.map(({ view }) => content(`SELECT * FROM scanfeed_reporting.stored_${view.id}`)))
  ).flat();
};

describe('a typed view that keeps its rows in a table', () => {
  it('says what the documents say after each of many random events, however far the table is behind', async () => {
    for (let seed = 1; seed <= cases(4, 60); seed += 1) {
      await emptyReports(setup);
      const choices = choicesFrom(seed);
      const world = new RandomWorld(choices, setup, setup.store, 8);
      const first = await setup.takeFeed({ name: 'first' });
      await first.commit([entryJson({ scanId: 'first', data: documentOf(1) })]);
      await build();
      await storeRows();
      await build();
      const done: string[] = [];
      for (let step = 0; step < STEPS; step += 1) {
        done.push(await world.nextEvent(choices.pick(FEEDS)));
        await expectExact(`seed ${seed}, behind: ${done.join(', ')}`);
        if (choices.chance(0.3)) await storeBatch();
        await expectExact(`seed ${seed}, stored: ${done.join(', ')}`);
      }
    }
  });

  it('reads the rows from the table when nothing has changed since', async () => {
    await store(documentOf(1));
    await build();
    await storeRows();
    await build();
    expect(await inTables()).toHaveLength(2); // the document and its only element
    const [documents] = await storedViews();
    await setup.rows(sql`UPDATE ${sql.raw(`scanfeed_reporting.stored_${documents?.view.id}`)} SET betrag = 7`);
    expect(await setup.rows(sql`SELECT betrag FROM scanfeed_reporting.document_rechnung`)).toEqual([{ betrag: '7' }]);
    await forgetProgress(setup.connection);
    await expectExact('deleted');
    await build();
    await expectExact('stored anew');
    expect(await inTables()).toHaveLength(2);
  });

  it('has new columns, and their values, when documents get new fields or values of another type', async () => {
    await store(documentOf(1));
    await build();
    await storeRows();
    await build();
    await store({ ...documentOf(2), betrag: 'zwei', skonto: 3, positionen: [{ menge: 1, preis: 2 }] });
    await expectExact('before the columns');
    await build();
    await expectExact('with the columns');
    const rows = await setup.rows(
      sql`SELECT betrag__text, skonto FROM scanfeed_reporting.document_rechnung ORDER BY scan_id`,
    );
    expect(rows).toEqual([
      { betrag__text: '1', skonto: null },
      { betrag__text: 'zwei', skonto: '3' },
    ]);
    expect((await inTables()).filter((row) => row.includes('zwei'))).toHaveLength(1);
  });

  it('says what the documents say in a transaction that is older than its table or columns', async () => {
    await store(documentOf(1));
    await build();
    const old = () => setup.database.sql.startTransaction().setIsolationLevel('repeatable read').execute();
    const documentsIn = async (transaction: Awaited<ReturnType<typeof old>>) => {
      const query = sql<{
        row: string;
      }>`SELECT to_jsonb(document)::text AS row FROM scanfeed_reporting.document_rechnung AS document`;
      const { rows } = await query.execute(transaction);
      await transaction.commit().execute();
      return rows.map(({ row }) => JSON.parse(row));
    };
    const beforeTable = await old();
    await sql`SELECT FROM ${tables.runs}`.execute(beforeTable); // takes the snapshot
    await storeRows();
    await build();
    expect(await documentsIn(beforeTable)).toMatchObject([{ betrag: 1 }]);
    const beforeColumn = await old();
    await sql`SELECT FROM ${tables.runs}`.execute(beforeColumn);
    await store({ ...documentOf(2), betrag: 'zwei' });
    await build();
    expect(await documentsIn(beforeColumn)).toMatchObject([{ betrag: 1, betrag__text: '1' }]);
  });

  it('keeps nothing of a run that is erased, even while rows are being stored', async () => {
    const { erase } = setup.operatorStore.deletedRuns;
    for (const name of ['one', 'two']) await store({ ...documentOf(1), name });
    await build();
    await storeRows();
    await build();
    expect((await inTables()).join()).toMatch(/one.*two/);
    await erase(['scan-1']);
    expect((await inTables()).join()).not.toContain('one');
    await forgetProgress(setup.connection);
    await Promise.all([erase(['scan-2']), storeBatch()]);
    expect(await inTables()).toEqual([]);
    await build();
    expect(await inTables()).toEqual([]);
  });

  it('keeps nothing of a run that has expired once the next rows are stored', async () => {
    const old = { deliveredAt: '2020-01-01T00:00:00Z', completedAt: '2020-01-01T00:00:00Z' };
    await store(documentOf(1), 'rechnung', old);
    await build();
    await storeRows();
    await build();
    await setup.operatorStore.deletedRuns.purgeRuns(365, 10);
    await expectExact('expired');
    await storeBatch();
    expect(await inTables()).toEqual([]);
  });

  it('is updated, and runs are erased, when all tables are published', async () => {
    for (const value of [1, 2]) await store(documentOf(value));
    await build();
    await storeRows();
    await build();
    await setup.rows(sql`CREATE PUBLICATION everything FOR ALL TABLES`);
    try {
      await setup.operatorStore.deletedRuns.erase(['scan-1']);
      await (await setup.takeFeed()).commit([entryJson({ scanId: 'scan-2', revision: 2, data: documentOf(3) })]);
      await build();
    } finally {
      await setup.rows(sql`DROP PUBLICATION everything`);
    }
    expect(await inTables()).toHaveLength(2);
    await expectExact('published');
  });

  it('stores each row once when two processes store rows at the same time', async () => {
    await store(documentOf(1));
    await build();
    await storeRows();
    await build();
    await feed().commit([entryJson({ scanId: 'scan-2', data: documentOf(2) })]);
    await Promise.all([storeBatch(), storeBatch()]);
    await storeBatch();
    expect(await inTables()).toHaveLength(4);
    await expectExact('two processes');
  });

  it('has a table when fields have the names of system columns', async () => {
    await store({ betrag: 1, ecken: [{ xmin: 1, xmax: 2, ctid: 'x', tableoid: 3 }] });
    await build();
    await storeRows();
    await build();
    expect(await fieldColumns(setup, 'document_rechnung_ecken')).toEqual([
      'ctid_ text',
      'tableoid_ numeric',
      'xmax_ numeric',
      'xmin_ numeric',
    ]);
    expect(await inTables()).toHaveLength(2);
  });

  it('has no table when its rows are no longer to be stored', async () => {
    await store(documentOf(1));
    await build();
    await storeRows();
    await build();
    await storeRows(false);
    await build();
    expect(await content(`SELECT * FROM scanfeed_reporting.${VIEW}`)).toHaveLength(1);
    expect(await setup.rows(sql`SELECT FROM pg_tables WHERE schemaname = 'scanfeed_reporting'`)).toEqual([]);
  });
});
