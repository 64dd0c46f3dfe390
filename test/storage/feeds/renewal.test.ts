import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { untilWaiting } from '../../support/lock-waits.js';
import { tables, useStore } from '../../support/store.js';

const bench = useStore();

it('reads the figures before it locks the row that commits need', async () => {
  const feed = await bench.takeFeed();
  await feed.commit(['{"scanId":"unusable"}']);
  // Counting takes as long as the test holds this lock.
  await bench.rows(sql`ALTER TABLE ${tables.quarantine} RENAME TO counted`);
  await bench.rows(sql`CREATE VIEW ${tables.quarantine} AS
    SELECT entry.* FROM scanfeed.counted AS entry CROSS JOIN pg_advisory_xact_lock_shared(1)`);
  const renewal = await bench.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(1)`.execute(tx);
    const renewed = bench.store.renewLease(feed.lease, 30_000);
    await untilWaiting(bench.database.sql, 1);
    await sql`SELECT FROM ${tables.feeds} FOR NO KEY UPDATE NOWAIT`.execute(tx);
    return { renewed };
  });
  expect(await renewal.renewed).toMatchObject({ status: { quarantinedEntries: 1 }, unfinished: [] });
});

it('renews the lease and reads the feed as it is after a commit that it waited for', async () => {
  const feed = await bench.takeFeed({ name: 'busy' });
  const renewal = await bench.database.sql.transaction().execute(async (tx) => {
    await sql`UPDATE ${tables.feeds} SET end_reached_at = clock_timestamp() WHERE name = 'busy'`.execute(tx);
    const renewed = bench.store.renewLease(feed.lease, 30_000);
    await untilWaiting(bench.database.sql, 1);
    return { renewed };
  });
  expect(await renewal.renewed).toMatchObject({
    status: { endReached: true, leaseHolder: feed.lease.holder, pendingResults: 0 },
  });
});

it('loses the lease to a process that took it while it waited', async () => {
  const feed = await bench.takeFeed({ name: 'taken' });
  const renewal = await bench.database.sql.transaction().execute(async (tx) => {
    await sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch + 1 WHERE name = 'taken'`.execute(tx);
    const renewed = bench.store.renewLease(feed.lease, 30_000);
    await untilWaiting(bench.database.sql, 1);
    return { renewed };
  });
  expect(await renewal.renewed).toBeNull();
});
