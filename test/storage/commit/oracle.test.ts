import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { type OracleFeed, startOracleFeed } from '../../support/oracle-feed.js';
import { type Preparation, useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, useStore } from '../../support/store.js';
import { syncToTheEnd } from '../../support/sync-to-the-end.js';

const SCANS = 2_000;
const DELIVERIES = 3_000;

/** The same schema, but `runs` is partitioned as docs/scaling.md says. */
const PARTITIONED: Preparation = {
  key: 'partitioned',
  prepare: async (url) => {
    const database = openTestDatabase(url, 1);
    const [first, ...others] = await readMigrations();
    if (first === undefined) throw new Error('there are no migrations');
    const text = first.text.replace(/(CREATE TABLE :"schema"\.runs \([^;]*\));/, '$1 PARTITION BY HASH (scan_id);\n$2');
    const partitions = [0, 1, 2].map(
      (n) =>
        `CREATE TABLE :"schema".runs_${n} PARTITION OF :"schema".runs FOR VALUES WITH (MODULUS 3, REMAINDER ${n});`,
    );
    expect(text).not.toBe(first.text);
    const partitioned = { ...first, text: text.replace('$2', partitions.join('\n')) };
    await migrate(connectStore(database, TEST_SCHEMA), [partitioned, ...others]);
    await database.close();
  },
};

let feed: OracleFeed;
beforeAll(async () => {
  feed = await startOracleFeed(SCANS, DELIVERIES);
});
afterAll(() => feed.emulator.close());

describe.each([
  ['plain', MIGRATED],
  ['partitioned', PARTITIONED],
])('a %s table of runs', (_, preparation) => {
  const setup = useStore(useDatabase(preparation));

  it(`matches an independent oracle when ${DELIVERIES} deliveries of ${SCANS} scans came in any order`, async () => {
    const total = await syncToTheEnd(feed.emulator, setup.store, 'default');
    await feed.expectStored(setup);
    expect(total).toMatchObject({ inserted: SCANS, quarantined: 0, conflicts: 0 });
    expect(total.inserted + total.updated + total.unchanged + total.stale).toBe(DELIVERIES);
  });
});
