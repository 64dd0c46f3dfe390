import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as erase from '../../../src/cli/commands/erase.js';
import * as views from '../../../src/cli/commands/views.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, fieldColumns, NO_READER } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);

beforeEach(() => emptyReports(bench));

const run = (args: string) =>
  runCommand(views, ['views', ...args.split(' ')], {
    env: { DATABASE_URL: given.url, SCANFEED_READER_ROLE: NO_READER },
  });
const store = async (data: unknown, slug = 'rechnung', scanId = 'scan-1') =>
  (await bench.takeFeed()).commit([entryJson({ scanId, documentType: { slug, name: slug }, data })]);

/** The statements in docs/reporting.md that cause the views of a type to be rebuilt. */
async function documentedForgetting(): Promise<readonly string[]> {
  const text = await readFile(new URL('../../../docs/reporting.md', import.meta.url), 'utf8');
  const block = /```sql untested\nBEGIN;\n([^`]*)COMMIT;\n```/.exec(text)?.[1] ?? '';
  return block.split(';').filter((statement) => statement.trim() !== '');
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

  it('refresh --all searches all documents when it is run', async () => {
    await store({ betrag: 1 });
    await run('refresh');
    await bench.rows(sql`UPDATE ${tables.runs} SET data = '{"anders": 1}'`);
    expect((await run('refresh')).out).toBe('All views are up to date.\n');
    expect((await run('refresh --all')).out).toContain('New: 0 views, 1 column.');
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual(['betrag numeric', 'anders numeric']);
  });

  it('keep the names of fields when their runs were erased, until the type is removed as documented', async () => {
    const positionen = [{ menge: 1 }];
    await store({ betrag: 1, 'Erika Canary': 2, positionen });
    await store({ betrag: 1, positionen }, 'rechnung', 'scan-2');
    await run('refresh');
    await runCommand(erase, ['erase', '--scan-id', 'scan-1', '--yes'], { env: { DATABASE_URL: given.url } });
    await run('refresh --all');
    expect(await fieldColumns(bench, 'document_rechnung')).toContain('erika_canary numeric');
    for (const statement of await documentedForgetting()) await bench.rows(sql.raw(statement));
    await run('refresh --all');
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual(['betrag numeric']);
    expect(await fieldColumns(bench, 'document_rechnung_positionen')).toEqual(['menge numeric']);
  });

  it('refresh exits with 75 when a daemon is refreshing', async () => {
    await store({ betrag: 1 });
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (daemon) => {
      await sql`SELECT FROM ${tables.reportProgress} FOR UPDATE`.execute(daemon);
      expect(await run('refresh')).toMatchObject({
        exitCode: 75,
        err: expect.stringMatching(/^scanfeed: a daemon is/),
      });
    });
    await other.close();
  });

  it('refresh names the failed views when some cannot be built', async () => {
    await store({ betrag: 1 });
    await run('refresh');
    await bench.rows(
      sql`DROP VIEW scanfeed_reporting.document_rechnung; CREATE TABLE scanfeed_reporting.document_rechnung ()`,
    );
    const { exitCode, err } = await run('refresh');
    await bench.rows(sql`DROP TABLE scanfeed_reporting.document_rechnung`);
    expect({ exitCode, err }).toEqual({
      exitCode: 1,
      err: 'scanfeed: not built: document_rechnung; PostgreSQL refused the statement: schema (SQLSTATE 42809); a table or column is missing or changed; see `scanfeed doctor`\n',
    });
  });

  it('list and show print the views when there are some', async () => {
    expect((await run('list')).out).toContain('run `scanfeed views refresh`');
    await store({ lieferant: { name: 'x' }, positionen: [{ menge: 1 }] });
    await store({ nr: 'x' }, 'lieferschein', 'scan-2');
    await run('refresh');
    expect((await run('list')).out.replace(/\d{4}-\S+Z/g, 'T')).toBe(
      `${[
        'VIEW                           DOCUMENT TYPE  ROWS ARE                FIELDS  BUILT',
        'document_lieferschein          lieferschein   documents                    1  T',
        'document_lieferschein_history  lieferschein   superseded revisions         1  T',
        'document_rechnung              rechnung       documents                    1  T',
        'document_rechnung_history      rechnung       superseded revisions         1  T',
        'document_rechnung_positionen   rechnung       elements of positionen       1  T',
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
    expect(JSON.parse((await run('list --json')).out)).toHaveLength(5);
    expect(await run('show document_x')).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: there is no view "document_x"; see `scanfeed views list`\n',
    });
  });
});
