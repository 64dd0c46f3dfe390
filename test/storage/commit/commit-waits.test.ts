import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import type { CommitOutcome, FreshnessClaim } from '../../../src/sync/ports/index.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const HOUR = 3_600_000;

/** A store whose monotonic time the test sets. */
function storeAt(time: { now: number }, database = setup.database) {
  const settings = {
    schema: TEST_SCHEMA,
    pendingRetryMs: 30_000,
    keptDays: null,
    monotonic: () => time.now,
  };
  return createStore(database, settings);
}
const polledAt = (at: number): FreshnessClaim => ({
  end: 'yes',
  polledAt: at,
  completeUpTo: null,
  lastDeliveredAt: null,
});
const completeAsOf = async (feed: string) =>
  (
    await setup.rows(sql<{ age_ms: number; at: Date }>`
      SELECT data_complete_as_of AS at,
        extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS age_ms
      FROM ${tables.feeds} WHERE name = ${feed}`)
  )[0];
function asOf(outcome: CommitOutcome) {
  if (outcome.kind === 'fenced') throw new Error('fenced');
  return outcome.asOf;
}

describe('freshness', () => {
  it('does not include the wait when the commit waited for a lock', async () => {
    const time = { now: 0 };
    const feed = await takeFeed(storeAt(time), testFeed({ name: 'locked' }));
    const held = await setup.database.sql.transaction().execute(async (tx) => {
      // Changes the row like another commit: a lock alone would not make the statement read its times again.
      await sql`UPDATE ${tables.feeds} SET last_poll_at = clock_timestamp() WHERE name = 'locked'`.execute(tx);
      const commit = feed.commit([entryJson({ scanId: 'locked' })], { freshness: polledAt(time.now) });
      await untilWaiting(setup.database.sql, 1);
      time.now = HOUR;
      const { rows } = await sql<{ now: Date }>`SELECT clock_timestamp() AS now FROM pg_sleep(0.1)`.execute(tx);
      return { commit, at: rows[0]?.now ?? new Date(0) };
    });
    const outcome = asOf(await held.commit);
    expect(outcome.dataCompleteAsOf?.getTime()).toBeLessThan(held.at.getTime());
    expect(outcome.readAt).toBe(0);
    // By the clock of the database, the wait is part of the lag.
    expect(outcome.lagMs).toBeGreaterThan(90);
  });

  it('does not include the wait when the commit waited for a connection', async () => {
    const database = openTestDatabase(given.url, 1);
    const time = { now: 0 };
    try {
      const feed = await takeFeed(storeAt(time, database), testFeed({ name: 'queued' }));
      const commit = await database.sql.connection().execute(async () => {
        const begun = feed.commit([entryJson({ scanId: 'queued' })], { freshness: polledAt(time.now) });
        await expect.poll(() => database.usage().waiting).toBe(1);
        time.now = HOUR;
        return { begun };
      });
      expect(asOf(await commit.begun).readAt).toBe(HOUR);
      expect((await completeAsOf('queued'))?.age_ms).toBeGreaterThanOrEqual(HOUR);
    } finally {
      await database.close();
    }
  });

  it('does not include the wait when a page writes nothing', async () => {
    const time = { now: 0 };
    const feed = await takeFeed(storeAt(time), testFeed({ name: 'empty' }));
    const held = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.feeds} WHERE name = 'empty' FOR UPDATE`.execute(tx);
      const commit = feed.commit([], { freshness: polledAt(time.now) });
      await untilWaiting(setup.database.sql, 1);
      time.now = HOUR;
      return { commit };
    });
    expect(asOf(await held.commit).readAt).toBe(0);
  });
});
