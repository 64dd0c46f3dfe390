import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { entryJson } from '../../support/entries.js';
import { emptyTables, tables, useStore } from '../../support/store.js';
import { syncToTheEnd } from '../../support/sync-to-the-end.js';

const setup = useStore();
let emulator: Emulator;

beforeAll(async () => {
  emulator = await startEmulator({ history: 300, switches: { truncatedShare: 0.5 } });
});
afterAll(() => emulator.close());

/** Returns all rows of the history, read by a new feed. */
async function storedWith(runFields: 'all' | 'required') {
  await emptyTables(setup, tables.runs);
  emulator.set({ runFields });
  await syncToTheEnd(emulator, setup.store, runFields);
  return setup.rows(sql`SELECT scan_id, revision, status, environment, document_type_slug, document_type_name, file_name,
      partner_name, partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at,
      result_state, repaired, extra
    FROM ${tables.runs} ORDER BY scan_id`);
}

it('keeps a run out of productive_runs when an answer of a later revision leaves out its test mode', async () => {
  const scanId = emulator.appendCount(1, { truncated: 'data', partnerTestMode: true })[0]?.scanId ?? '';
  const body = entryJson({ scanId, revision: 2, partnerTestMode: undefined });
  emulator.answerRun(scanId, { body });
  await syncToTheEnd(emulator, setup.store, 'later');
  const rows =
    await setup.rows(sql`SELECT run.revision, run.partner_test_mode, run.result_state, pending_reason, productive
    FROM scanfeed.runs AS run JOIN scanfeed.judged_runs USING (scan_id) WHERE scan_id = ${scanId}`);
  const pending = { result_state: 'pending', pending_reason: 'newer_revision', productive: false };
  expect(rows).toEqual([{ revision: 1, partner_test_mode: true, ...pending }]);
});

it('stores the same rows when single-run answers leave out every optional field', async () => {
  const requests = emulator.requests.count('run');
  const rows = await storedWith('required');
  expect(emulator.requests.count('run') - requests).toBeGreaterThan(50);
  expect(rows).toEqual(await storedWith('all'));
});
