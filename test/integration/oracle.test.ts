import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/cli/system-clock.js';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { RecognitionClient } from '../../src/service/client.js';
import { followFeed } from '../../src/sync/loop.js';
import type { CommitCounts } from '../../src/sync/ports.js';
import { engineContext, silentObserver } from '../support/engine.js';
import { type Expected, randomDeliveries } from '../support/oracle.js';
import { tables, useStore } from '../support/store.js';

const SCANS = 2_000;
const DELIVERIES = 3_000;

const bench = useStore();
const given = randomDeliveries(SCANS, DELIVERIES, 0.05, 20_261_121);
let emulator: Emulator;

beforeAll(async () => {
  emulator = await startEmulator({ liveLimit: DELIVERIES + 1 });
  emulator.appendRaw(given.feed);
  for (const [scanId, body] of given.runs) emulator.answerRun(scanId, { body });
});
afterAll(() => emulator.close());

/** Follows the whole feed from its beginning as the daemon does, through HTTP and into PostgreSQL. */
async function syncToTheEnd(feed: string): Promise<Record<keyof Omit<CommitCounts, 'stored'>, number>> {
  const total = { inserted: 0, updated: 0, unchanged: 0, stale: 0, quarantined: 0, conflicts: 0 };
  const stop = new AbortController();
  const client = new RecognitionClient({ baseUrl: emulator.url, apiKey: emulator.apiKey });
  const context = engineContext({
    service: client,
    store: bench.store,
    clock: systemClock,
    identity: { ...engineContext({ service: client, store: bench.store, clock: systemClock }).identity, name: feed },
    read: {
      filters: { status: ['completed', 'failed'], environment: 'prod', documentType: null },
      markdown: false,
      pageLimit: 200,
    },
    observer: silentObserver({
      committed: (counts) => {
        for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += counts[name];
      },
      polled: (outcome) => outcome === 'end' && stop.abort(),
    }),
  });
  await followFeed(context, stop.signal);
  await client.close();
  return total;
}

const stored = async () => {
  const rows = await bench.rows(
    sql<Expected & { scanId: string }>`
      SELECT scan_id AS "scanId", revision, status, partner_name AS "partnerName", ocr_confidence AS "ocrConfidence",
        data->>'betrag' AS amount, data->>'nummer' AS number, failure_reason AS "failureReason", extra::text AS extra
      FROM ${tables.runs}`,
  );
  return new Map(rows.map(({ scanId, ...row }) => [scanId, row]));
};
const systemColumns = () =>
  bench.rows(sql`SELECT scan_id, xmin::text, xmax::text, ctid::text FROM ${tables.runs} ORDER BY scan_id`);
const walPosition = async () =>
  (
    await bench.rows(sql<{ bytes: string }>`SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS bytes`)
  )[0];

it(`${DELIVERIES} deliveries of ${SCANS} scans in any order: the database equals what an independent oracle says`, async () => {
  const total = await syncToTheEnd('default');
  const found = await stored();
  expect(found.size).toBe(SCANS);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(given.expected));
  expect(total).toMatchObject({ inserted: SCANS, quarantined: 0, conflicts: 0 });
  expect(total.inserted + total.updated + total.unchanged + total.stale).toBe(DELIVERIES);
  expect(await bench.rows(sql`SELECT FROM ${tables.runs} WHERE result_state = 'pending'`)).toEqual([]);
});

it('all of it delivered again: no row is written or locked, and hardly any WAL', async () => {
  await syncToTheEnd('again'); // once, so that hint bits and the like are settled
  const [columns, before] = [await systemColumns(), await walPosition()];
  const total = await syncToTheEnd('once more');
  const wal = Number((await walPosition())?.bytes) - Number(before?.bytes);
  expect(await systemColumns()).toEqual(columns);
  expect(total).toMatchObject({ inserted: 0, updated: 0 });
  expect(wal).toBeLessThan(1024 * 1024);
  console.info(
    `redelivery of ${DELIVERIES} entries: ${total.unchanged + total.stale} unchanged or stale, ${Math.round(wal / 1024)} kB of WAL`,
  );
});
