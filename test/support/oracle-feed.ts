import { sql } from 'kysely';
import { expect } from 'vitest';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.js';
import { type Expected, randomDeliveries } from './oracle.js';
import { type StoreSetup, tables } from './store.js';

/** An emulator with an oracle of its feed. */
export interface OracleFeed {
  readonly emulator: Emulator;
  readonly scans: number;
  readonly deliveries: number;
  /**
   * Fails unless the database holds what the oracle says, no more and no less, and nothing waits for its result. A run whose test
   * mode only an earlier revision states may still be asked for it.
   */
  expectStored(setup: StoreSetup): Promise<void>;
}

export async function startOracleFeed(
  scans = 2_000,
  deliveries = 3_000,
  options: Partial<EmulatorOptions> = {},
): Promise<OracleFeed> {
  const given = randomDeliveries(scans, deliveries, 0.05, 20_261_121);
  const emulator = await startEmulator({ liveLimit: deliveries + 1, ...options });
  emulator.appendRaw(given.feed);
  for (const [scanId, body] of given.runs) emulator.answerRun(scanId, { body });
  return {
    emulator,
    scans,
    deliveries,
    expectStored: async (setup) => {
      const stored = await storedRuns(setup);
      expect(stored.size).toBe(scans);
      expect(Object.fromEntries(stored)).toEqual(Object.fromEntries(given.expected));
      expect(
        await setup.rows(sql`SELECT pending_reason FROM ${tables.runs} WHERE result_state = 'pending'
          AND NOT (pending_reason = 'test_mode_unknown' AND partner_test_mode AND test_mode_revision < revision)`),
      ).toEqual([]);
    },
  };
}

async function storedRuns(setup: StoreSetup): Promise<ReadonlyMap<string, Expected>> {
  const rows = await setup.rows(
    sql<Expected & { scanId: string }>`
      SELECT scan_id AS "scanId", revision, status, partner_name AS "partnerName",
        partner_test_mode AS "testMode", test_mode_revision AS "testModeRevision", ocr_confidence AS "ocrConfidence",
        data->>'betrag' AS amount, data->>'nummer' AS number, failure_reason AS "failureReason", extra::text AS extra
      FROM ${tables.runs}`,
  );
  return new Map(rows.map(({ scanId, ...row }) => [scanId, row]));
}
