import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { type Expected, randomDeliveries } from '../support/oracle.js';
import { tables, useStore } from '../support/store.js';
import { syncToTheEnd } from '../support/sync-to-the-end.js';

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

const stored = async () => {
  const rows = await bench.rows(
    sql<Expected & { scanId: string }>`
      SELECT scan_id AS "scanId", revision, status, partner_name AS "partnerName", ocr_confidence AS "ocrConfidence",
        data->>'betrag' AS amount, data->>'nummer' AS number, failure_reason AS "failureReason", extra::text AS extra
      FROM ${tables.runs}`,
  );
  return new Map(rows.map(({ scanId, ...row }) => [scanId, row]));
};
it(`${DELIVERIES} deliveries of ${SCANS} scans in any order: the database equals what an independent oracle says`, async () => {
  const total = await syncToTheEnd(emulator, bench.store, 'default');
  const found = await stored();
  expect(found.size).toBe(SCANS);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(given.expected));
  expect(total).toMatchObject({ inserted: SCANS, quarantined: 0, conflicts: 0 });
  expect(total.inserted + total.updated + total.unchanged + total.stale).toBe(DELIVERIES);
  expect(await bench.rows(sql`SELECT FROM ${tables.runs} WHERE result_state = 'pending'`)).toEqual([]);
});
