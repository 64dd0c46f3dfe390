import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { readFeedReports } from '../../src/storage/feed-report.js';
import { readBackfill, requestBackfill, stopBackfills } from '../../src/storage/request-backfill.js';
import { requestSweep } from '../../src/storage/request-sweep.js';
import { batchOf, draftPage } from '../../src/sync/page-draft.js';
import type { Backfill, BackfillCommit, FeedIdentity, LeaseGrant } from '../../src/sync/ports.js';
import { entryJson, pageJson } from '../support/entries.js';
import { untilWaiting } from '../support/lock-waits.js';
import { rawPage } from '../support/pages.js';
import { type TestFeed, tables, testFeed, useStore } from '../support/store.js';

const bench = useStore();
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const day = (n: number) => new Date(Date.UTC(2026, 0, n));
let feeds = 0;
let name = '';

beforeEach(() => {
  feeds += 1;
  name = `feed-${feeds}`;
});

const ask = (since: Date | null, until: Date | null) => requestBackfill(bench.database.sql, tables, name, since, until);
const next = () => bench.store.nextBackfill(name);
const atEnd = { atEnd: true, polledAt: 0, lastDelivered: null, lastDeliveredAt: null };

/** A feed that has read its first page. */
async function begun(over: Partial<FeedIdentity> = {}): Promise<TestFeed> {
  const feed = await bench.takeFeed({ name, ...over });
  await feed.commit([], { freshness: { ...atEnd, polledAt: performance.now() } });
  return feed;
}

function commitOf(lease: LeaseGrant, backfill: Backfill, over: Partial<BackfillCommit> = {}): BackfillCommit {
  const { id, until, cursor } = backfill;
  const told = { deliveredUpTo: null, entries: 0, feedHadCursor: true, pace: null };
  const nothing = { batch: batchOf([], null), quarantine: [] };
  return { lease, id, until, from: cursor, to: 'further', finished: false, ...nothing, ...told, ...over };
}

/** The next backfill, which must be there. */
async function expected(): Promise<Backfill> {
  const backfill = await next();
  if (backfill === null) throw new Error('nothing is to be read');
  return backfill;
}

async function finish(lease: LeaseGrant): Promise<void> {
  const outcome = await bench.store.commitBackfill(commitOf(lease, await expected(), { finished: true }));
  expect(outcome.kind).toBe('committed');
}

const feedRow = async () => {
  const [row] = await bench.rows(
    sql<
      Record<string, unknown>
    >`SELECT cursor, start_since, complete_from::text, widened_at FROM ${tables.feeds} WHERE name = ${name}`,
  );
  return row;
};

describe('a feed that begins with its new runs', () => {
  it('has its start and the history behind it stored before its first request, once', async () => {
    await bench.takeFeed({ name, start: 'live' });
    await bench.takeFeed({ name, start: 'live' });
    const { since } = await bench.store.readPosition(name);
    const rows = await bench.rows(
      sql<{
        kind: string;
        since: Date | null;
        until: Date;
      }>`SELECT kind, since, until FROM ${tables.backfills} WHERE feed = ${name}`,
    );
    expect(rows).toMatchObject([{ kind: 'history', since: null }]);
    expect((rows[0]?.until.getTime() ?? 0) - (since?.getTime() ?? 0)).toBeCloseTo(HOUR, -3);
  });

  it('leaves no history where it was started otherwise before', async () => {
    await bench.takeFeed({ name, start: 'now' });
    await bench.takeFeed({ name, start: 'live' });
    expect(await bench.rows(sql`SELECT FROM ${tables.backfills} WHERE feed = ${name}`)).toEqual([]);
  });

  it('has nothing to read behind it before it has read something itself', async () => {
    const feed = await bench.takeFeed({ name, start: 'live' });
    expect(await next()).toBeNull();
    await feed.commit([]);
    expect(await next()).toMatchObject({ kind: 'history', since: null, cursor: null, entries: 0 });
  });

  it('does not finish the history with a page asked for before the feed left its start', async () => {
    const { lease } = await begun({ start: 'live' }); // the feed has a cursor by now
    const history = await expected();
    const early = commitOf(lease, history, { finished: true, feedHadCursor: false });
    expect(await bench.store.commitBackfill(early)).toEqual({ kind: 'fenced' });
    expect(await bench.store.readStatus(name)).toMatchObject({ backfillComplete: false });
  });

  it('is complete from its start until the history is in, then from the beginning', async () => {
    const { lease } = await begun({ start: 'live' });
    expect(await bench.store.readStatus(name)).toMatchObject({ endReached: true, backfillComplete: false });
    expect((await feedRow())?.complete_from).not.toBe('-infinity');
    await finish(lease);
    expect(await bench.store.readStatus(name)).toMatchObject({ endReached: true, backfillComplete: true });
    expect(await feedRow()).toMatchObject({ complete_from: '-infinity', start_since: null });
    expect(await next()).toBeNull();
  });

  it('is not said to be complete by a history that passed what the filters include now', async () => {
    await begun({ start: 'live' });
    const { filters } = testFeed();
    const { lease } = await bench.takeFeed({ name, filters: { ...filters, environment: 'all' } });
    const before = await feedRow();
    await finish(lease);
    expect(await feedRow()).toMatchObject({ complete_from: before?.complete_from, start_since: null });
    expect(await bench.store.readSweeps(name)).toMatchObject([{ kind: 'full', ageMs: Number.POSITIVE_INFINITY }]);
  });

  it('counts the reading of its history as a full sweep, and has none before', async () => {
    const { lease } = await begun({ start: 'live' });
    expect(await bench.store.readSweeps(name)).toEqual([]);
    expect(await requestSweep(bench.database.sql, tables, name, null)).toBeNull();
    expect(await requestSweep(bench.database.sql, tables, name, HOUR)).not.toBeNull();
    const again = await bench.takeFeed({ name });
    expect(lease.epoch).toBeLessThan(again.lease.epoch);
    await finish(again.lease);
    expect(await bench.store.readSweeps(name)).toContainEqual(
      expect.objectContaining({ kind: 'full', finished: true, since: null }),
    );
  });
});

describe('a page of a backfill', () => {
  it('stores its entries with its own position, and leaves the cursor alone', async () => {
    const { lease } = await begun();
    await ask(day(1), day(2));
    const draft = draftOf(entryJson({ scanId: `${name}-a` }));
    const content = { batch: batchOf(draft.entries, draft), quarantine: draft.quarantine };
    const told = { deliveredUpTo: day(2), entries: 1 };
    const outcome = await bench.store.commitBackfill(commitOf(lease, await expected(), { ...content, ...told }));
    expect(outcome).toMatchObject({ kind: 'committed', counts: { inserted: 1 } });
    expect(await next()).toMatchObject({ cursor: 'further', deliveredUpTo: day(2), entries: 1, stored: 1 });
    expect(await feedRow()).toMatchObject({ cursor: '1-0' });
  });

  it.each([
    ['was read from another position', async () => ({ from: 'elsewhere' })],
    ['was read with another end', async () => ({ until: day(9) })],
    ['belongs to another epoch', async (lease: LeaseGrant) => ({ lease: { ...lease, epoch: lease.epoch - 1 } })],
    [
      'belongs to one that was stopped',
      async () => {
        await stopBackfills(bench.database.sql, tables, name);
        return {};
      },
    ],
  ] as const)('that %s writes nothing', async (_, wrong) => {
    await begun();
    const { lease } = await bench.takeFeed({ name });
    await ask(day(1), day(2));
    const backfill = await expected();
    const draft = draftOf(entryJson({ scanId: `${name}-a` }));
    const content = { batch: batchOf(draft.entries, draft), quarantine: [] };
    const commit = commitOf(lease, backfill, { ...content, ...(await wrong(lease)) });
    expect(await bench.store.commitBackfill(commit)).toEqual({ kind: 'fenced' });
    expect(await bench.store.findStored([`${name}-a`])).toEqual([]);
    expect((await readBackfill(bench.database.sql, tables, backfill.id))?.idleMs).toBeNull();
  });

  it('is written by one of two that read it at the same moment', async () => {
    const { lease } = await begun();
    await ask(day(1), day(2));
    const backfill = await expected();
    const both = await bench.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.backfills} WHERE id = ${backfill.id}::bigint FOR UPDATE`.execute(tx);
      const commits = ['one', 'other'].map((to) =>
        bench.store.commitBackfill(commitOf(lease, backfill, { to, entries: 5 })),
      );
      await untilWaiting(bench.database.sql, 2);
      return { commits: Promise.all(commits) };
    });
    expect((await both.commits).map(({ kind }) => kind).sort()).toEqual(['committed', 'fenced']);
    expect(await next()).toMatchObject({ entries: 5 });
  });

  it('never takes back how far it has read', async () => {
    const { lease } = await begun();
    await ask(day(1), day(9));
    await bench.store.commitBackfill(commitOf(lease, await expected(), { deliveredUpTo: day(5) }));
    await bench.store.commitBackfill(commitOf(lease, await expected(), { deliveredUpTo: day(3) }));
    expect(await next()).toMatchObject({ deliveredUpTo: day(5) });
  });
});

describe('a stretch that is asked for', () => {
  it('comes before the history, in the order of asking', async () => {
    const { lease } = await begun({ start: 'live' });
    await ask(day(5), day(6));
    await ask(day(1), day(2));
    expect(await next()).toMatchObject({ kind: 'request', since: day(5) });
    await finish(lease);
    expect(await next()).toMatchObject({ kind: 'request', since: day(1) });
    await finish(lease);
    expect(await next()).toMatchObject({ kind: 'history' });
  });

  it('joins one under way that it begins within, and moves its end out', async () => {
    const { lease } = await begun();
    const first = await ask(day(1), day(10));
    await bench.store.commitBackfill(commitOf(lease, await expected(), { to: 'half-way' }));
    expect(await ask(day(2), day(12))).toMatchObject({ id: first.id, joined: true, since: day(1), until: day(12) });
    expect(await ask(day(10), day(11))).toMatchObject({ id: first.id, joined: true, until: day(12) });
    expect(await next()).toMatchObject({ cursor: 'half-way', until: day(12) });
  });

  it('is one of its own where it begins before or after those under way, or one is over', async () => {
    const { lease } = await begun();
    await ask(day(5), day(10));
    expect(await ask(day(4), day(10))).toMatchObject({ joined: false });
    expect(await ask(day(11), day(12))).toMatchObject({ joined: false });
    expect(await ask(null, day(2))).toMatchObject({ joined: false, since: null });
    await finish(lease);
    expect(await ask(day(5), day(10))).toMatchObject({ joined: true, since: day(4) });
  });

  it('does not join one that passed what the filters include now', async () => {
    await begun();
    await ask(day(1), day(10));
    const { filters } = testFeed();
    await bench.takeFeed({ name, filters: { ...filters, environment: 'all' } });
    expect(await ask(day(1), day(10))).toMatchObject({ joined: false });
  });

  it('ends now where no end is given, by the later of the database’s clock and the last delivery', async () => {
    await begun();
    const { until } = await ask(day(1), null);
    expect(Math.abs(until.getTime() - Date.now())).toBeLessThan(60_000);
    const ahead = new Date(Date.now() + DAY);
    await bench.rows(sql`UPDATE ${tables.feeds} SET last_delivered_at = ${ahead} WHERE name = ${name}`);
    expect((await ask(day(1), null)).until).toEqual(ahead);
  });

  it.each([
    [
      'reaches an hour beyond where the data is complete from',
      day(1),
      new Date(day(10).getTime() + HOUR),
      '2026-01-01',
    ],
    ['falls short of that', day(1), new Date(day(10).getTime() + HOUR - 1), '2026-01-10'],
    ['begins after it', day(11), day(20), '2026-01-10'],
  ])('makes the data complete from its beginning on, or not, if it %s', async (_, since, until, from) => {
    const { lease } = await begun({ start: day(10) });
    await ask(since, until);
    await finish(lease);
    const [row] = await bench.rows(
      sql<{ from: string; start: Date }>`SELECT to_char(complete_from AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS "from",
        start_since AS start FROM ${tables.feeds} WHERE name = ${name}`,
    );
    expect(row).toEqual({ from, start: day(10) });
  });

  it('is stopped where it stands, and what was not asked for goes on', async () => {
    await begun({ start: 'live' });
    const { id } = await ask(day(1), day(2));
    expect(await stopBackfills(bench.database.sql, tables, name)).toMatchObject([{ id, stopped: true }]);
    expect(await next()).toMatchObject({ kind: 'history' });
    expect(await stopBackfills(bench.database.sql, tables, name)).toEqual([]);
  });
});

describe('the pace', () => {
  it('of feed and backfills is told while it is fresh, and only of the present lease', async () => {
    const { lease } = await begun({ start: 'live' });
    const pace = { entriesPerSecond: 812.5, secondsLeft: 90 };
    const report = async () => (await readFeedReports(bench.database.sql, tables)).find(({ feed }) => feed === name);
    await bench.store.notePace(lease, pace);
    await bench.store.commitBackfill(commitOf(lease, await expected(), { pace, deliveredUpTo: day(3), entries: 7 }));
    expect(await report()).toMatchObject({ pace, backfills: [{ kind: 'history', entries: 7, pace }] });
    await bench.rows(
      sql`UPDATE ${tables.backfills} SET paced_at = paced_at - interval '2 minutes' WHERE feed = ${name}`,
    );
    expect(await report()).toMatchObject({ backfills: [{ kind: 'history', pace: null }] });
    await bench.takeFeed({ name });
    expect(await report()).toMatchObject({ pace: null });
    await bench.store.notePace(lease, pace);
    expect(await report()).toMatchObject({ pace: null });
  });
});

function draftOf(...entries: readonly string[]) {
  return draftPage(rawPage(pageJson(entries)));
}
