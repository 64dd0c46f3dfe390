import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDemoService } from '../../src/demo/demo-history.js';
import { findFreePort } from '../../src/demo/ports.js';
import { connectStore } from '../../src/storage/connection/store-connection.js';
import { refreshReports } from '../../src/storage/reporting/refresh-reports.js';
import { createStore } from '../../src/storage/store.js';
import type { Preparation } from './postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA } from './store.js';
import { syncToTheEnd } from './sync-to-the-end.js';

const FIRST_PORT = 18_899;

/**
 * What the demo stores, with corrections, an entry that cannot be stored, a result that cannot be loaded, and a run whose correction
 * leaves out the test mode.
 */
export const DEMO_DATA: Preparation = {
  key: 'demo_data',
  prepare: async (url) => {
    await MIGRATED.prepare(url);
    const folder = await mkdtemp(join(tmpdir(), 'scanfeed-demo-'));
    const { emulator } = await startDemoService(join(folder, 'service.json'), {
      host: '127.0.0.1',
      port: await findFreePort(FIRST_PORT),
    });
    const database = openTestDatabase(url);
    const settings = { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null };
    const store = createStore(database, { ...settings, monotonic: () => performance.now() });
    const follow = () => syncToTheEnd(emulator, store, 'default');
    try {
      emulator.appendRun({ scanId: 'invoice-1', partnerTestMode: true });
      await follow();
      for (let n = 0; n < 20; n += 1) emulator.correctAny();
      const entry = { revision: 1, environment: 'prod', fileName: 'a.pdf', deliveredAt: new Date().toISOString() };
      const documentType = { slug: 'rechnung', name: 'Rechnung' };
      emulator.appendRaw([
        JSON.stringify({ ...entry, documentType, scanId: 'no-status' }),
        JSON.stringify({ ...entry, documentType, scanId: 'no-result', status: 'completed', resultTruncated: true }),
      ]);
      await follow();
      emulator.set({ testModeField: 'first-revision' });
      emulator.correct('invoice-1');
      await follow();
      await refreshReports(connectStore(database, TEST_SCHEMA), 'scanfeed_nobody');
    } finally {
      await database.close();
      await emulator.close();
      await rm(folder, { recursive: true });
    }
  },
};
