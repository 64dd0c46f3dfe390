import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import * as doctor from '../../../src/cli/commands/doctor.js';
import type { Finding } from '../../../src/cli/doctor/finding.js';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import { refreshReports } from '../../../src/storage/reporting/refresh-reports.js';
import { setReportingTimeZone } from '../../../src/storage/reporting/time-zone.js';
import { migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { createStore } from '../../../src/storage/store.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { NO_READER, refresh } from '../../support/reports.js';
import { MIGRATED, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const page = new URL('../../../docs/restoring.md', import.meta.url);

/** The statements in docs/restoring.md that rename the schemas. */
async function documentedRenaming(): Promise<string> {
  return /```sql\n(ALTER SCHEMA [^`]*)```/.exec(await readFile(page, 'utf8'))?.[1] ?? '';
}

it('stores and reports runs, and forgets feeds, when the schemas were renamed as documented', async () => {
  const documentType = { slug: 'rechnung', name: 'Rechnung' };
  const entry = (scanId: string, revision: number, over = {}) =>
    entryJson({ scanId, revision, documentType, data: { betrag: revision }, ...over });
  await (await setup.takeFeed()).commit([entry('a', 1), entry('b', 1)]);
  await refresh(setup);
  await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE history_of IS NULL`);
  await refresh(setup);
  await setup.rows(sql.raw(await documentedRenaming()));

  const connection = connectStore(setup.database, 'invoices');
  const examine = async () => {
    const service = { SCANFEED_BASE_URL: 'http://127.0.0.1:9/v1', SCANFEED_API_KEY: 'key' };
    const env = { ...service, DATABASE_URL: given.url, SCANFEED_DATABASE_SCHEMA: 'invoices' };
    const { out } = await runCommand(doctor, ['doctor', '--json'], { env });
    return (JSON.parse(out) as { findings: Finding[] }).findings.find(({ check }) => check === 'schema');
  };
  const message = expect.stringContaining('its functions search the former name; run `scanfeed migrate`');
  expect(await examine()).toMatchObject({ outcome: 'failing', message });
  expect(await migrate(connection, await readMigrations())).toEqual([]);
  expect(await examine()).toMatchObject({ outcome: 'ok' });
  const settings = { schema: 'invoices', pendingRetryMs: 30_000, keptDays: null };
  const feed = await takeFeed(
    createStore(setup.database, { ...settings, monotonic: () => performance.now() }),
    testFeed({ name: 'other' }),
  );
  await feed.counts([entry('a', 2), entry('b', 2, { status: 'odd' })]);
  await setReportingTimeZone(connection, 'Europe/Berlin');
  expect((await refreshReports(connection, NO_READER)).failed).toEqual([]);
  expect(
    await setup.rows(sql`SELECT scan_id, betrag, productive FROM invoices_reporting.document_rechnung ORDER BY 1`),
  ).toEqual([
    { scan_id: 'a', betrag: '2', productive: true },
    { scan_id: 'b', betrag: '1', productive: false },
  ]);
  expect(await setup.rows(sql`SELECT scan_id, betrag FROM invoices_reporting.document_rechnung_history`)).toEqual([
    { scan_id: 'a', betrag: '1' },
  ]);
  await sql`DELETE FROM ${connection.tables.feeds} WHERE name = 'default'`.execute(setup.database.sql);
});

describe('a feed whose process was killed', () => {
  const killed = useStore(useDatabase(MIGRATED));

  it('is taken by another process when the schemas were renamed as documented', async () => {
    const { lease } = await killed.takeFeed();
    await createProcesses(killed.connection).removeProcess(lease.holder);
    await killed.rows(sql.raw(await documentedRenaming()));
    await migrate(connectStore(killed.database, 'invoices'), await readMigrations());
    const settings = { schema: 'invoices', pendingRetryMs: 30_000, keptDays: null, monotonic: () => 0 };
    const store = createStore(killed.database, settings);
    expect(await store.acquireLease(testFeed(), 'another')).toMatchObject({ epoch: 2 });
  });
});
