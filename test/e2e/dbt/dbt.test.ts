import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as views from '../../../src/cli/commands/views.js';
import { grantReader } from '../../../src/storage/reporting/reader-role.js';
import { runCommand } from '../../support/command.js';
import { DEMO_DATA } from '../../support/demo-data.js';
import { requireTool } from '../../support/deployment/tools.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import { OLD } from '../../support/random-world.js';
import { connectionOf, tables, useStore } from '../../support/store.js';
import { readRelations, storeWorstDocuments } from '../../support/worst-documents.js';

const PROJECT = fileURLToPath(new URL('../../../docs/dbt', import.meta.url));
const given = useDatabase(DEMO_DATA);
const setup = useStore(given);
/** Roles are shared by the whole server. */
const READER = `scanfeed_dbt_reader_${process.pid}`;
const LOGIN = `scanfeed_dbt_${process.pid}`;
let folder = '';

beforeEach((context) => requireTool(context, 'dbt'));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scanfeed-dbt-'));
  expect(await grantReader(setup.connection, READER)).toBe(true);
  // What docs/reporting.md says that dbt needs.
  await setup.rows(sql`CREATE ROLE ${sql.id(LOGIN)} LOGIN PASSWORD 'secret' IN ROLE ${sql.id(READER)}`);
  await setup.rows(sql`CREATE SCHEMA dbt AUTHORIZATION ${sql.id(LOGIN)}`);
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  for (const role of [LOGIN, READER]) {
    await setup.rows(sql`DROP OWNED BY ${sql.id(role)} CASCADE`);
    await setup.rows(sql`DROP ROLE ${sql.id(role)}`);
  }
});

/** Runs dbt on the project. Returns its output; throws if it fails. */
async function dbt(...args: readonly string[]): Promise<string> {
  const { host = '', port = '', database = '' } = connectionOf(given.url) as Record<string, string>;
  const { PATH = '', HOME = '' } = process.env;
  const connection = { PGHOST: host, PGPORT: String(port), PGDATABASE: database, PGUSER: LOGIN, PGPASSWORD: 'secret' };
  const places = ['--project-dir', PROJECT, '--profiles-dir', PROJECT, '--target-path', folder, '--log-path', folder];
  const child = spawn('dbt', ['--warn-error', '--no-use-colors', ...args, ...places], {
    env: { PATH, HOME, ...connection },
  });
  const [output, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (status !== 0) throw new Error(`dbt ${args.join(' ')} ended with ${status}:\n${output}${errors}`);
  return output;
}

const COLUMNS = sql.raw(
  'scan_id, revision, completed_at, partner_name, rechnungsnummer, rechnungsdatum, waehrung, nettobetrag, bruttobetrag',
);
const invoices = () => setup.rows(sql`SELECT ${COLUMNS} FROM dbt.invoices ORDER BY scan_id`);
const productiveInvoices = () =>
  setup.rows(sql`SELECT ${COLUMNS} FROM scanfeed_reporting.document_rechnung WHERE productive ORDER BY scan_id`);

const INVOICE = { rechnungsnummer: 'RE-1', rechnungsdatum: '2026-01-02', bruttobetrag: 119, nettobetrag: 100 };

/** What the feed delivers of a run at first and afterwards, by run. */
const DELIVERIES: Readonly<Record<string, readonly [first: Fields, next: Fields]>> = {
  corrected: [{}, { revision: 2, data: { ...INVOICE, bruttobetrag: 238 } }],
  failed: [{}, { revision: 2, status: 'failed', data: undefined, failureReason: 'timeout', error: 'x' }],
  retried: [{ status: 'failed', data: undefined, failureReason: 'timeout', error: 'x' }, { revision: 2 }],
  'in quarantine': [{}, { revision: 2, status: 'odd' }],
  'out of quarantine': [{ revision: 2, status: 'odd' }, { revision: 3 }],
  'in test mode': [{}, { revision: 2, partnerTestMode: true }],
  'in test mode no more': [{ partnerTestMode: true }, { revision: 2 }],
  'of another type': [{}, { revision: 2, documentType: { slug: 'beleg', name: 'Beleg' } }],
  'of this type now': [{ documentType: { slug: 'beleg', name: 'Beleg' } }, { revision: 2 }],
  expired: [{}, {}],
};

async function deliver(which: 0 | 1): Promise<void> {
  const feed = await setup.takeFeed();
  for (const [scanId, deliveries] of Object.entries(DELIVERIES))
    await feed.commit([entryJson({ scanId, data: INVOICE, ...deliveries[which] })]);
}

describe('the dbt project', () => {
  it('describes the typed view as `scanfeed views show --dbt` prints it', async () => {
    const shown = await runCommand(views, ['views', 'show', 'document_rechnung', '--dbt'], {
      env: { DATABASE_URL: given.url, SCANFEED_READER_ROLE: READER },
    });
    await expect(shown.out).toMatchFileSnapshot('../../../docs/dbt/models/documents.yml');
  });

  it('holds the productive invoices after an incremental run as after a full refresh when runs have changed', async () => {
    await deliver(0);
    const feed = await setup.takeFeed();
    await feed.commit([entryJson({ scanId: 'erased', data: INVOICE })]);
    await commitPending(feed, { scanId: 'pending' });
    await dbt('build');
    expect(await invoices()).toEqual(await productiveInvoices());
    const before = (await invoices()).length;

    await deliver(1);
    await setup.operatorStore.deletedRuns.erase(['erased']);
    await (await setup.takeFeed()).commit([entryJson({ scanId: 'pending', data: INVOICE })]);
    await setup.rows(
      sql`UPDATE ${tables.runs} SET delivered_at = ${OLD}, completed_at = ${OLD} WHERE scan_id = 'expired'`,
    );
    await setup.operatorStore.deletedRuns.purgeRuns(365, 10);
    await dbt('build');
    const afterwards = await invoices();
    expect(afterwards).toEqual(await productiveInvoices());
    // Lost: failed, in quarantine, in test mode, of another type, expired, erased. Gained: four that were none, and the pending
    // one.
    expect(afterwards).toHaveLength(before - 6 + 5);

    const table = () => setup.rows(sql`SELECT * FROM dbt.invoice_runs ORDER BY scan_id`);
    const incremental = await table();
    await dbt('build', '--full-refresh');
    expect(await table()).toEqual(incremental);
  });

  it('finds the data fresh when it is, and stale when it is not', async () => {
    const complete = (ago: string) =>
      setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = now() - ${ago}::interval`);
    await complete('1 minute');
    expect(await dbt('source', 'freshness')).toContain('PASS freshness of scanfeed.sync_status');
    await complete('2 hours');
    await expect(dbt('source', 'freshness')).rejects.toThrow('ERROR STALE freshness of scanfeed.sync_status');
  });

  it('finds the data stale when one of two feeds is', async () => {
    await setup.takeFeed({ name: 'other' });
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = now()`);
    expect(await dbt('source', 'freshness')).toContain('PASS freshness of scanfeed.sync_status');
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = NULL WHERE name = 'other'`);
    await expect(dbt('source', 'freshness')).rejects.toThrow('ERROR STALE freshness of scanfeed.sync_status');
    await setup.rows(sql`DELETE FROM ${tables.feeds} WHERE name = 'other'`);
  });

  it('builds its models, and shows the views, over the worst documents', async () => {
    await storeWorstDocuments(setup);
    expect(await grantReader(setup.connection, READER)).toBe(true); // the views are new
    await setup.rows(sql`GRANT SELECT ON public.called_functions TO ${sql.id(READER)}`);
    await dbt('build');
    expect(await invoices()).toEqual(await productiveInvoices());
    // Not all: dbt takes some seconds for each.
    const shownViews = /changes|productive_runs|functions|document_rechnung(_liste)?$/;
    const relations = (await readRelations(setup)).filter(({ name }) => shownViews.test(name));
    expect(relations).toHaveLength(5);
    for (const { name, rows } of relations) {
      const shown = await dbt('show', '--inline', `SELECT * FROM ${name}`, '--limit', '10000', '--output', 'json');
      expect(JSON.parse(shown.slice(shown.indexOf('{'))).show, name).toHaveLength(rows.length);
    }
  }, 300_000);
});
