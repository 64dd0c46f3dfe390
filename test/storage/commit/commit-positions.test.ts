import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { batchOf, checkEntries } from '../../../src/sync/page/check-entries.js';
import type { LeaseGrant, PageCommit } from '../../../src/sync/ports/index.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { rawPage } from '../../support/pages.js';
import { claimNothing, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const setup = useStore();

/** A store whose calls wait for each other until `release`, and the number of its transactions. */
function batchingStore() {
  const waiting: (() => void)[] = [];
  let transactions = 0;
  const store = createStore(setup.database, {
    ...{ schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null },
    monotonic: () => performance.now(),
    batching: { waitMs: () => 100, sleep: () => new Promise((resolve) => waiting.push(resolve)) },
    onTransaction: () => {
      transactions += 1;
    },
  });
  const release = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { store, release, transactions: () => transactions };
}

/** A poll that found the end of the feed just now. */
const poll = (lease: LeaseGrant, over: Partial<PageCommit> = {}): PageCommit => ({
  ...{ lease, from: null, to: null, batch: batchOf([]), quarantine: [] },
  freshness: { end: 'yes', polledAt: performance.now(), completeUpTo: null, lastDeliveredAt: null },
  ...over,
});

const take = async (name: string, store = setup.store) => (await takeFeed(store, testFeed({ name }))).lease;

const feedRow = async (name: string) =>
  (
    await setup.rows(sql<{ cursor: string | null; complete: Date | null; ended: Date | null }>`
      SELECT cursor, data_complete_as_of AS complete, end_reached_at AS ended FROM ${tables.feeds} WHERE name = ${name}`)
  )[0];

describe('polls of several feeds that are committed together', () => {
  it('are one transaction, in which each feed gets its own position and freshness', async () => {
    const { store, release, transactions } = batchingStore();
    const [a, b, c] = [await take('a', store), await take('b', store), await take('c', store)];
    const [earlier, later] = [performance.now() - 60_000, performance.now()];
    const claim = { completeUpTo: null, lastDeliveredAt: null };
    const outcomes = [
      store.commitPage(poll(a, { to: 'it"s, {a} \\ ü', freshness: { ...claim, end: 'yes', polledAt: earlier } })),
      store.commitPage(poll(b, { to: 'b-1', freshness: { ...claim, end: 'yes', polledAt: later } })),
      store.commitPage(poll(c, { to: 'c-1', freshness: claimNothing() })),
    ];
    release();
    const [ofA, ofB, ofC] = await Promise.all(outcomes);
    expect(transactions()).toBe(1);
    expect(await feedRow('a')).toMatchObject({ cursor: 'it"s, {a} \\ ü', ended: expect.any(Date) });
    expect(await feedRow('c')).toEqual({ cursor: 'c-1', complete: null, ended: null });
    const lags = [ofA, ofB, ofC].map((outcome) => (outcome?.kind === 'committed' ? outcome.asOf.lagMs : 'fenced'));
    expect(lags).toEqual([expect.any(Number), expect.any(Number), null]);
    expect(Number(lags[0]) - Number(lags[1])).toBeCloseTo(later - earlier, -3);
    const noted = await setup.rows(sql`SELECT feed, cursor FROM ${tables.cursorHistory} ORDER BY feed`);
    expect(noted).toEqual([
      { feed: 'a', cursor: 'it"s, {a} \\ ü' },
      { feed: 'b', cursor: 'b-1' },
      { feed: 'c', cursor: 'c-1' },
    ]);
  });

  it('claim nothing for a feed whose lease was lost or whose cursor was moved, and are not fenced for the others', async () => {
    const { store, release } = batchingStore();
    const [held, lost, moved] = [await take('held'), await take('lost'), await take('moved')];
    await setup.store.releaseLease(lost);
    await takeFeed(setup.store, testFeed({ name: 'lost' }), 'another process');
    await setup.store.movePosition(moved, null, { cursor: 'elsewhere', since: null });
    const outcomes = [held, lost, moved].map((lease) => store.commitPage(poll(lease)));
    release();
    const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
    expect(kinds).toEqual(['committed', 'fenced', 'fenced']);
    expect((await feedRow('lost'))?.complete).toBeNull();
    expect(await feedRow('moved')).toMatchObject({ cursor: 'elsewhere', complete: null });
  });

  it('do not wait for a feed that another transaction has locked, which is committed once it is unlocked', async () => {
    const { store, release } = batchingStore();
    const [free, locked] = [await take('free'), await take('locked')];
    const other = await setup.connection.db.startTransaction().execute();
    try {
      await sql`SELECT FROM ${tables.feeds} WHERE name = 'locked' FOR NO KEY UPDATE`.execute(other);
      const [ofFree, ofLocked] = [free, locked].map((lease) => store.commitPage(poll(lease, { to: 'on' })));
      release();
      expect(await ofFree).toMatchObject({ kind: 'committed' });
      expect(await feedRow('locked')).toMatchObject({ cursor: null });
      await other.rollback().execute();
      expect(await ofLocked).toMatchObject({ kind: 'committed' });
      expect(await feedRow('locked')).toMatchObject({ cursor: 'on', complete: expect.any(Date) });
    } finally {
      if (!other.isRolledBack) await other.rollback().execute();
    }
  });

  it('all fail, and move no feed, when the statement fails', async () => {
    const { store, release } = batchingStore();
    const leases = [await take('one'), await take('two')];
    await setup.rows(sql`ALTER TABLE ${tables.cursorHistory} RENAME TO hidden`);
    const outcomes = leases.map((lease) => store.commitPage(poll(lease, { to: 'on' })));
    release();
    const settled = await Promise.allSettled(outcomes);
    await setup.rows(sql`ALTER TABLE ${sql.id(TEST_SCHEMA, 'hidden')} RENAME TO cursor_history`);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect([await feedRow('one'), await feedRow('two')]).toMatchObject([{ cursor: null }, { cursor: null }]);
  });

  it('do not delay a page with entries', async () => {
    const { store } = batchingStore();
    const { lease } = await takeFeed(setup.store, testFeed({ name: 'busy' }));
    const { entries, quarantine } = checkEntries(rawPage(pageJson([entryJson({ scanId: 'new' })], 'on')));
    expect(await store.commitPage({ ...poll(lease), batch: batchOf(entries), quarantine })).toMatchObject({
      kind: 'committed',
      counts: { inserted: 1 },
    });
  });
});

it('plans the commit of a poll without entries only at first', async () => {
  const lease = await take('at rest');
  for (let polls = 0; polls < 12; polls += 1) await setup.store.commitPage(poll(lease));
  // Of the only connection: the statements run one after the other.
  const plans = await setup.rows(sql<{
    generic: number;
  }>`SELECT generic_plans::int AS generic FROM pg_prepared_statements
    WHERE statement LIKE '%WITH sent AS%' AND custom_plans + generic_plans >= 12`);
  expect(plans).toEqual([{ generic: expect.any(Number) }]);
  expect(plans[0]?.generic).toBeGreaterThan(0);
});
