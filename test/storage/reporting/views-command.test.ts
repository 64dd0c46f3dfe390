import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import * as doctor from '../../../src/cli/commands/doctor.js';
import * as erase from '../../../src/cli/commands/erase.js';
import * as views from '../../../src/cli/commands/views.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, fieldColumns, NO_READER } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);

beforeEach(() => emptyReports(setup));

const run = (args: string) =>
  runCommand(views, ['views', ...args.split(' ')], {
    env: { DATABASE_URL: given.url, SCANFEED_READER_ROLE: NO_READER },
  });
const store = async (data: unknown, slug = 'rechnung', scanId = 'scan-1') =>
  (await setup.takeFeed()).commit([entryJson({ scanId, documentType: { slug, name: slug }, data })]);

/** Returns the number of stored rows of the documents; null: there is no table. */
async function storedRows(): Promise<number | null> {
  const [table] = await setup.rows(sql<{ name: string }>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = 'scanfeed_reporting' LIMIT 1`);
  if (table === undefined) return null;
  const rows = await setup.rows(sql`SELECT FROM ${sql.id('scanfeed_reporting', table.name)}`);
  return rows.length;
}

/** A value that no index can have, even compressed. */
const LONG = Array.from({ length: 200 }, (_, number) => createHash('sha256').update(`${number}`).digest('hex')).join(
  '',
);

/** The statements in docs/reporting.md that cause the views of a type to be rebuilt. */
async function documentedForgetting(): Promise<readonly string[]> {
  const text = await readFile(new URL('../../../docs/reporting.md', import.meta.url), 'utf8');
  const block = /```sql untested\nBEGIN;\n([^`]*)COMMIT;\n```/.exec(text)?.[1] ?? '';
  return block.split(/;\n/).filter((statement) => statement.trim() !== '');
}

describe('views', () => {
  it('refresh prints the new views when there are any', async () => {
    await store({ betrag: 1, positionen: [{ menge: 1 }] });
    expect(await run('refresh')).toEqual({
      exitCode: 0,
      err: '',
      out: 'New: 3 views, 2 columns. Built:\n  document_rechnung\n  document_rechnung_history\n  document_rechnung_positionen\n',
    });
    expect((await run('refresh')).out).toBe('All views are up to date.\n');
    expect(JSON.parse((await run('refresh --json')).out)).toEqual({
      views: 0,
      columns: 0,
      built: [],
      failed: [],
      busy: false,
    });
  });

  it('store keeps the rows of a view in a table, until --drop is given', async () => {
    await store({ betrag: 1 });
    await run('refresh');
    expect(await run('store document_rechnung')).toEqual({
      exitCode: 0,
      err: '',
      out: 'document_rechnung keeps its rows in a table now.\n',
    });
    expect(await storedRows()).toBe(1);
    expect((await run('list')).out).toMatch(/^document_rechnung +rechnung +documents +1 +yes/m);
    const dropped = 'document_rechnung now reads the documents directly; its table was dropped.\n';
    expect((await run('store document_rechnung --drop')).out).toBe(dropped);
    expect(await storedRows()).toBeNull();
  });

  it('show prints all typed views as sources of dbt, but needs a name without --dbt', async () => {
    expect((await run('show --dbt')).err).toContain('there are no typed views yet');
    await store({ nummer: 'RE-1', positionen: [{ menge: 1 }] });
    await run('refresh');
    const tables = (text: string) => parse(text).sources[0].tables.map(({ name }: { name: string }) => name);
    const names = ['document_rechnung', 'document_rechnung_history', 'document_rechnung_positionen'];
    expect(tables((await run('show --dbt')).out)).toEqual(names);
    expect(tables((await run('show document_rechnung --dbt')).out)).toEqual(['document_rechnung']);
    expect(await run('show')).toMatchObject({ exitCode: 64, err: expect.stringContaining('name a view') });
  });

  it('index creates an index that queries on the view use, and --list finds', async () => {
    const feed = await setup.takeFeed();
    const documentType = { slug: 'rechnung', name: 'Rechnung' };
    const numbers = Array.from({ length: 500 }, (_, number) => `RE-${number}`);
    await feed.commit(numbers.map((nummer) => entryJson({ scanId: nummer, documentType, data: { nummer } })));
    await run('refresh');
    const created = 'Created an index of document_rechnung on nummer, completed_at.\n';
    expect(await run('index document_rechnung nummer completed_at')).toEqual({ exitCode: 0, err: '', out: created });
    expect((await run('index document_rechnung nummer completed_at')).out).toBe(
      'document_rechnung already has this index.\n',
    );
    await setup.rows(sql`ANALYZE`);
    const plan = await setup.rows(
      sql`EXPLAIN SELECT * FROM scanfeed_reporting.document_rechnung WHERE nummer = 'RE-1'`,
    );
    expect(JSON.stringify(plan)).toMatch(/Index Scan using stored_\d+_nummer_completed_at_idx/);
    const indexes = JSON.parse((await run('index --list --json')).out);
    expect(indexes).toMatchObject([{ view: 'document_rechnung', columns: ['nummer', 'completed_at'], valid: true }]);
    // A new column does not lose it.
    await store({ nummer: 'RE-2', neu: 1 }, 'rechnung', 'scan-2');
    await run('refresh');
    expect((await run('index --list')).out).toContain('nummer, completed_at');
    const changed = async (drop = '') =>
      JSON.parse((await run(`index document_rechnung nummer completed_at --json${drop}`)).out);
    const index = { view: 'document_rechnung', columns: ['nummer', 'completed_at'] };
    expect(await changed()).toEqual({ ...index, index: 'unchanged' });
    expect(await changed(' --drop')).toEqual({ ...index, index: 'dropped' });
    expect((await run('index --list')).out).toBe('There are no indexes.\n');
  });

  it('index replaces an index when its creation was interrupted, and doctor names it until then', async () => {
    const examine = async () => {
      const env = { SCANFEED_BASE_URL: 'http://127.0.0.1:9/v1', SCANFEED_API_KEY: 'key', DATABASE_URL: given.url };
      const { findings } = JSON.parse((await runCommand(doctor, ['doctor', '--json'], { env })).out);
      return findings.find(({ check }: { check: string }) => check === 'report indexes');
    };
    await store({ nummer: 'RE-1' });
    await run('refresh');
    await run('index document_rechnung nummer');
    await setup.rows(sql`UPDATE pg_index SET indisvalid = false
      WHERE indexrelid = (SELECT oid FROM pg_class WHERE relname LIKE 'stored_%_nummer_idx')`);
    expect((await run('index --list')).out).toContain('invalid');
    const message = expect.stringContaining('interrupted; run `scanfeed views index document_rechnung nummer` again');
    expect(await examine()).toMatchObject({ outcome: 'warning', message });
    expect((await run('index document_rechnung nummer')).out).toContain('Created an index');
    expect((await run('index --list')).out).toContain(' valid');
    expect(await examine()).toMatchObject({ outcome: 'ok', message: '1 index, all valid' });
  });

  it('index waits for reports that began before, however long they take', async () => {
    await store({ nummer: 'RE-1' });
    await run('refresh');
    await run('store document_rechnung');
    const other = openTestDatabase(given.url);
    const report = await other.sql.startTransaction().setIsolationLevel('repeatable read').execute();
    await sql`SELECT FROM scanfeed_reporting.document_rechnung`.execute(report);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const indexing = run('index document_rechnung nummer');
    await untilWaiting(other.sql, 1);
    vi.advanceTimersByTime(3_600_000);
    vi.useRealTimers();
    await report.commit().execute();
    expect(await indexing).toMatchObject({ exitCode: 0, err: '' });
    await other.close();
  });

  it('index leaves none when a value is too long for it', async () => {
    await store({ nummer: LONG });
    await run('refresh');
    const { exitCode, err } = await run('index document_rechnung nummer');
    expect([exitCode, err]).toEqual([1, expect.stringContaining('a value that is too long for an index')]);
    expect((await run('index --list')).out).toBe('There are no indexes.\n');
  });

  it('refresh stores the rows of the other views when a value is too long for an index of one', async () => {
    await store({ nummer: 'RE-1', positionen: [{ menge: 1 }] });
    await run('refresh');
    await run('index document_rechnung nummer');
    await run('store document_rechnung_positionen');
    await run('store document_rechnung --drop'); // so that its table is the last one
    await run('index document_rechnung nummer');
    await store({ nummer: LONG, positionen: [{ menge: 2 }, { menge: 3 }] }, 'rechnung', 'scan-2');
    const { exitCode, err } = await run('refresh');
    expect([exitCode, err]).toEqual([
      1,
      expect.stringContaining('`scanfeed views index document_rechnung COLUMN --drop`'),
    ]);
    const upTo = await setup.rows(sql<{ name: string; current: boolean }>`
      SELECT name, stored_up_to = (SELECT max(change_seq) FROM ${tables.runs}) AS current
      FROM ${tables.reportViews} WHERE stores_rows ORDER BY name`);
    expect(upTo).toEqual([
      { name: 'document_rechnung', current: false },
      { name: 'document_rechnung_positionen', current: true },
    ]);
  });

  it('index builds the table again when somebody has dropped it, and erasing does not need it', async () => {
    await store({ nummer: 'RE-1' });
    await store({ nummer: 'RE-2' }, 'rechnung', 'scan-2');
    await run('refresh');
    await run('store document_rechnung');
    const dropTable = async () => {
      const [table] = await setup.rows(
        sql<{ name: string }>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'scanfeed_reporting'`,
      );
      await setup.rows(sql`DROP TABLE ${sql.id('scanfeed_reporting', table?.name ?? '')} CASCADE`);
    };
    await dropTable();
    const erased = await runCommand(erase, ['erase', '--scan-id', 'scan-1', '--yes'], {
      env: { DATABASE_URL: given.url },
    });
    expect([erased.exitCode, erased.err]).toEqual([0, '']);
    expect((await run('index document_rechnung nummer')).exitCode).toBe(0);
    expect(await storedRows()).toBe(1);
    await dropTable();
    expect((await run('refresh --all')).exitCode).toBe(0);
    expect(await storedRows()).toBe(1);
  });

  it('index creates indexes on different columns when two processes begin with a view without a table', async () => {
    await store({ nummer: 'RE-1', name: 'x' });
    await run('refresh');
    const both = ['index document_rechnung nummer', 'index document_rechnung name'];
    for (const { exitCode } of await Promise.all(both.map(run))) expect([0, 75]).toContain(exitCode);
    for (const command of both) expect((await run(command)).exitCode).toBe(0);
    expect(JSON.parse((await run('index --list --json')).out)).toHaveLength(2);
  });

  it.each([
    ['index document_rechnung nix', 'has no column "nix"', 1],
    ['index document_nix nummer', 'there is no view "document_nix"', 1],
    ['index document_rechnung', 'name a view and the columns', 64],
    ['index document_rechnung nummer --drop', 'has no index on nummer', 1],
    ['store document_rechnung_history', 'superseded revisions', 1],
  ])('%s fails with a reason', async (args, reason, exitCode) => {
    await store({ nummer: 'RE-1' });
    await run('refresh');
    const failed = await run(args);
    expect(failed.exitCode).toBe(exitCode);
    expect(failed.err).toContain(reason);
  });

  it('refresh --all searches all documents when it is run', async () => {
    await store({ betrag: 1 });
    await run('refresh');
    await setup.rows(sql`UPDATE ${tables.runs} SET data = '{"anders": 1}'`);
    expect((await run('refresh')).out).toBe('All views are up to date.\n');
    expect((await run('refresh --all')).out).toContain('New: 0 views, 1 column.');
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['betrag numeric', 'anders numeric']);
  });

  it('keep the names of fields when their runs were erased, until the type is removed as documented', async () => {
    const positionen = [{ menge: 1 }];
    await store({ betrag: 1, 'Erika Canary': 2, positionen, steuern: [{ 'Erika Canary': 3 }] });
    await store({ betrag: 1, positionen }, 'rechnung', 'scan-2');
    await run('refresh');
    await runCommand(erase, ['erase', '--scan-id', 'scan-1', '--yes'], { env: { DATABASE_URL: given.url } });
    await run('refresh --all');
    expect(await fieldColumns(setup, 'document_rechnung')).toContain('erika_canary numeric');
    for (const statement of await documentedForgetting()) await setup.rows(sql.raw(statement));
    await run('refresh --all');
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['betrag numeric']);
    expect(await fieldColumns(setup, 'document_rechnung_positionen')).toEqual(['menge numeric']);
    expect(await setup.rows(sql`SELECT FROM pg_attribute WHERE attname ~ 'canary'`)).toEqual([]);
  });

  it('refresh exits with 75 when a daemon is refreshing', async () => {
    await store({ betrag: 1 });
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (daemon) => {
      await sql`SELECT FROM ${tables.reportProgress} FOR UPDATE`.execute(daemon);
      expect(await run('refresh')).toMatchObject({
        exitCode: 75,
        out: '',
        err: expect.stringMatching(/^scanfeed: a daemon is/),
      });
    });
    await other.close();
  });

  it('refresh and store exit with 75 when a report reads a view that has to be built again', async () => {
    await store({ betrag: 1 });
    await run('refresh');
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (report) => {
      await sql`SELECT FROM scanfeed_reporting.document_rechnung`.execute(report);
      expect(await run('store document_rechnung')).toMatchObject({
        exitCode: 75,
        err: expect.stringMatching(/^scanfeed: document_rechnung was not brought up to date: /),
      });
      expect(await run('refresh')).toMatchObject({
        exitCode: 75,
        out: '',
        err: expect.stringMatching(/^scanfeed: not built: document_rechnung; /),
      });
    });
    await other.close();
    expect(await run('refresh')).toMatchObject({ exitCode: 0 });
  });

  it('refresh names the failed views when some cannot be built', async () => {
    await store({ betrag: 1 });
    await run('refresh');
    await setup.rows(
      sql`DROP VIEW scanfeed_reporting.document_rechnung; CREATE TABLE scanfeed_reporting.document_rechnung ()`,
    );
    const { exitCode, err } = await run('refresh');
    await setup.rows(sql`DROP TABLE scanfeed_reporting.document_rechnung`);
    expect({ exitCode, err }).toEqual({
      exitCode: 1,
      err: "scanfeed: not built: document_rechnung; PostgreSQL refused the statement: schema (SQLSTATE 42809); a table, column or function is missing or changed; `scanfeed doctor` or the server's log says which. Restore that object from a backup\n",
    });
  });

  it('list and show print the views when there are some', async () => {
    expect((await run('list')).out).toContain('run `scanfeed views refresh`');
    await store({ lieferant: { name: 'x' }, positionen: [{ menge: 1 }] });
    await store({ nr: 'x' }, 'lieferschein', 'scan-2');
    await run('refresh');
    expect((await run('list')).out).toBe(
      `${[
        'VIEW                           DOCUMENT TYPE  ROWS ARE                FIELDS  IN A TABLE',
        'document_lieferschein          lieferschein   documents                    1  no',
        'document_lieferschein_history  lieferschein   superseded revisions         1  no',
        'document_rechnung              rechnung       documents                    1  no',
        'document_rechnung_history      rechnung       superseded revisions         1  no',
        'document_rechnung_positionen   rechnung       elements of positionen       1  no',
      ].join('\n')}\n`,
    );
    expect((await run('show document_rechnung')).out).toBe(
      'scanfeed_reporting.document_rechnung: documents of the document type "rechnung"\n\n' +
        'COLUMN          TYPE  FIELD\nlieferant_name  text  lieferant.name\n',
    );
    expect(JSON.parse((await run('show document_rechnung_positionen --json')).out)).toEqual({
      name: 'document_rechnung_positionen',
      documentType: 'rechnung',
      arrays: [['positionen']],
      history: false,
      columns: [{ name: 'menge', path: ['menge'], type: 'numeric' }],
    });
    const listed = JSON.parse((await run('list --json')).out);
    expect(listed).toHaveLength(5);
    expect(listed[0].builtAt).toMatch(/^\d{4}-/);
    expect(await run('show document_x')).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: there is no view "document_x"; see `scanfeed views list`\n',
    });
  });
});
