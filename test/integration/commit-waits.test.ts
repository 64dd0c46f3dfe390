import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/storage/store.js';
import { batchOf, draftPage } from '../../src/sync/page-draft.js';
import type { CommitOutcome, EntryBatch, Freshness } from '../../src/sync/ports.js';
import { entryJson, pageJson } from '../support/entries.js';
import { untilWaiting } from '../support/lock-waits.js';
import { rawPage } from '../support/pages.js';
import { useDatabase } from '../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
const HOUR = 3_600_000;

/** A store whose monotonic time the test sets. */
function storeAt(time: { now: number }, database = bench.database) {
  const settings = {
    schema: TEST_SCHEMA,
    leaseTtlMs: 30_000,
    pendingRetryMs: 30_000,
    keptDays: null,
    monotonic: () => time.now,
  };
  return createStore(database, settings);
}
const polledAt = (at: number): Freshness => ({
  atEnd: true,
  polledAt: at,
  lastDelivered: null,
  lastDeliveredAt: null,
});
const completeAsOf = async (feed: string) =>
  (
    await bench.rows(sql<{ age_ms: number; at: Date }>`
      SELECT data_complete_as_of AS at,
        extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS age_ms
      FROM ${tables.feeds} WHERE name = ${feed}`)
  )[0];
function asOf(outcome: CommitOutcome) {
  if (outcome.kind === 'fenced') throw new Error('fenced');
  return outcome.asOf;
}

describe('freshness', () => {
  it('is no younger for the time that the commit waited for a lock', async () => {
    const time = { now: 0 };
    const feed = await takeFeed(storeAt(time), testFeed({ name: 'locked' }));
    const held = await bench.database.sql.transaction().execute(async (tx) => {
      // Changes the row, as a renewal does: a lock alone would not make the statement read its times again.
      await sql`UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() WHERE name = 'locked'`.execute(tx);
      const commit = feed.commit([entryJson({ scanId: 'locked' })], { freshness: polledAt(time.now) });
      await untilWaiting(bench.database.sql, 1);
      time.now = HOUR;
      const { rows } = await sql<{ now: Date }>`SELECT clock_timestamp() AS now FROM pg_sleep(0.1)`.execute(tx);
      return { commit, at: rows[0]?.now ?? new Date(0) };
    });
    const outcome = asOf(await held.commit);
    expect(outcome.dataCompleteAsOf?.getTime()).toBeLessThan(held.at.getTime());
    expect(outcome.readAt).toBe(0);
    // By the database's clock: what it waited is lag.
    expect(outcome.lagMs).toBeGreaterThan(90);
  });

  it('is no younger for the time that the commit waited for a connection', async () => {
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

  it('of a page with nothing to write is no younger either', async () => {
    const time = { now: 0 };
    const feed = await takeFeed(storeAt(time), testFeed({ name: 'empty' }));
    const held = await bench.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.feeds} WHERE name = 'empty' FOR UPDATE`.execute(tx);
      const commit = feed.commit([], { freshness: polledAt(time.now) });
      await untilWaiting(bench.database.sql, 1);
      time.now = HOUR;
      return { commit };
    });
    expect(asOf(await held.commit).readAt).toBe(0);
  });
});

describe('two feeds that store the same new run at the same moment', () => {
  /** Both have judged their entry as new before either is written: they queue for the clock, which the test holds. */
  async function together<A, B>(
    first: () => Promise<A>,
    second: () => Promise<B>,
    meanwhile = () => {},
  ): Promise<[A, B]> {
    const queued = await bench.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.changeClock} FOR UPDATE`.execute(tx);
      const one = first();
      await untilWaiting(bench.database.sql, 1);
      const two = second();
      await untilWaiting(bench.database.sql, 2);
      meanwhile();
      return [one, two] as const;
    });
    return Promise.all(queued);
  }
  const batch = (entries: readonly string[]): EntryBatch => {
    const draft = draftPage(rawPage(pageJson(entries)));
    return batchOf(draft.entries, draft);
  };
  const row = async (scanId: string) =>
    (await bench.rows(sql<Record<string, unknown>>`SELECT * FROM ${tables.runs} WHERE scan_id = ${scanId}`))[0];

  it('the one that comes second completes what the first stored less completely', async () => {
    const bare = await bench.takeFeed({ name: 'bare' });
    const full = await bench.takeFeed({ name: 'full' });
    const [one, two] = await together(
      () => bare.counts([entryJson({ scanId: 'both' })]),
      () =>
        full.counts([entryJson({ scanId: 'both', markdown: '# Rechnung' }), entryJson({ scanId: 'own' })], {
          to: 'on',
        }),
    );
    expect(one).toMatchObject({ inserted: 1 });
    expect(two).toMatchObject({ inserted: 1, updated: 1, unchanged: 0, stale: 0, conflicts: 0 });
    // The other was stored by the first, and only filled.
    expect(two).toMatchObject({ stored: ['own'] });
    expect(await row('both')).toMatchObject({ markdown: '# Rechnung', feed: 'full' });
    expect(await bench.store.readPosition('full')).toMatchObject({ cursor: 'on' });
  });

  it('the second is counted as what it was: unchanged, in conflict, stale, or newer', async () => {
    const a = await bench.takeFeed({ name: 'a' });
    const b = await bench.takeFeed({ name: 'b' });
    const entries = (over: Record<string, Record<string, unknown>>) =>
      Object.entries(over).map(([scanId, fields]) => entryJson({ scanId, ...fields }));
    const [, two] = await together(
      () => a.counts(entries({ same: {}, other: { data: { a: 1 } }, older: { revision: 2 }, newer: {} })),
      () => b.counts(entries({ same: {}, other: { data: { a: 2 } }, older: {}, newer: { revision: 2 } })),
    );
    expect(two).toMatchObject({ inserted: 0, updated: 1, unchanged: 2, conflicts: 1, stale: 1, stored: ['newer'] });
    expect(await row('other')).toMatchObject({ data: { a: 1 }, feed: 'a' });
  });

  it('results that were loaded later are judged again, too', async () => {
    const a = await bench.takeFeed({ name: 'a' });
    const b = await bench.takeFeed({ name: 'b' });
    const draft = (over: Record<string, unknown>) => batch([entryJson({ scanId: 'loaded', ...over })]);
    const [, two] = await together(
      () => bench.store.commitResults(a.lease, draft({})),
      () => bench.store.commitResults(b.lease, draft({ markdown: '# Rechnung' })),
    );
    expect(two).toMatchObject({ counts: { updated: 1, stale: 0 } });
    expect(await row('loaded')).toMatchObject({ markdown: '# Rechnung' });
  });

  it('the second is sent anew, with the ages of that time, and then allows for the other for an hour', async () => {
    const time = { now: 0 };
    const one = await bench.takeFeed({ name: 'early' });
    const two = await takeFeed(storeAt(time), testFeed({ name: 'late' }));
    /** When the ages of the second were read that met the first, and at the end waited until then. */
    const meet = async (scanId: string, until: number) => {
      const entries = [entryJson({ scanId })];
      const [, outcome] = await together(
        () => one.commit(entries),
        () => two.commit(entries, { freshness: polledAt(0) }),
        () => {
          time.now = until;
        },
      );
      return asOf(outcome).readAt;
    };
    expect(await meet('first', HOUR)).toBe(HOUR);
    expect((await completeAsOf('late'))?.age_ms).toBeGreaterThanOrEqual(HOUR);
    expect(await meet('allowed for', 2 * HOUR - 1)).toBe(HOUR);
    time.now = 3 * HOUR - 2;
    expect(await meet('still allowed for', 3 * HOUR - 1)).toBe(3 * HOUR - 2);
    time.now = 4 * HOUR - 1;
    expect(await meet('forgotten', 4 * HOUR)).toBe(4 * HOUR);
  });
});
