import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { randomDeliveries } from '../../support/oracle.js';
import { tables, useServerOfItsOwn, useStore } from '../../support/store.js';
import { syncToTheEnd } from '../../support/sync-to-the-end.js';

const DELIVERIES = 3_000;

// WAL is counted per server, and other tests write to the shared one.
const setup = useStore(useServerOfItsOwn());
const given = randomDeliveries(2_000, DELIVERIES, 0.05, 20_261_121);
let emulator: Emulator;

beforeAll(async () => {
  emulator = await startEmulator({ liveLimit: DELIVERIES + 1 });
  emulator.appendRaw(given.feed);
  for (const [scanId, body] of given.runs) emulator.answerRun(scanId, { body });
});
afterAll(() => emulator.close());

const systemColumns = () =>
  setup.rows(sql`SELECT scan_id, xmin::text, xmax::text, ctid::text FROM ${tables.runs} ORDER BY scan_id`);
const walPosition = async () =>
  (
    await setup.rows(sql<{ bytes: string }>`SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS bytes`)
  )[0];

it('a history writes no row, no lock and hardly any WAL when it is delivered again', async () => {
  await syncToTheEnd(emulator, setup.store, 'default');
  await syncToTheEnd(emulator, setup.store, 'again'); // once, so that hint bits and the like are settled
  const [columns, before] = [await systemColumns(), await walPosition()];
  const total = await syncToTheEnd(emulator, setup.store, 'once more');
  const wal = Number((await walPosition())?.bytes) - Number(before?.bytes);
  expect(await systemColumns()).toEqual(columns);
  expect(total).toMatchObject({ inserted: 0, updated: 0 });
  expect(total.unchanged + total.stale).toBe(DELIVERIES);
  expect(wal).toBeLessThan(1024 * 1024);
  console.info(`redelivery of ${DELIVERIES} entries: ${Math.round(wal / 1024)} kB of WAL`);
});
