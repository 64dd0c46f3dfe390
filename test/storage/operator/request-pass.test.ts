import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { PassRange, PassRequest } from '../../../src/storage/operator/request-pass.js';
import type { LeaseGrant, PassKind } from '../../../src/sync/ports/index.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { finishPass, passCommit, passRows, useNewFeed, WIDER } from '../../support/passes.js';
import { claimNothing, tables, useStore } from '../../support/store.js';

const setup = useStore();
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const day = (n: number) => new Date(Date.UTC(2026, 0, n));
const current = useNewFeed(setup);
const { take, next } = current;
const finish = async (lease: LeaseGrant, kind: PassKind) => finishPass(setup, lease, await next(kind));

const backfill = (since: Date | null, until: Date | null) =>
  setup.operatorStore.passes.requestBackfill(current.name, { since, until });

type Reconciliation = { readonly since?: Date | number; readonly until?: PassRange['until'] };

const tryReconcile = (kind: 'recent' | 'full', { since = HOUR, until = null }: Reconciliation = {}) =>
  setup.operatorStore.passes.requestReconciliation(current.name, kind, { since, until });

async function reconcile(kind: 'recent' | 'full', range?: Reconciliation): Promise<PassRequest> {
  const request = await tryReconcile(kind, range);
  if (request === undefined) throw new Error('the pass was refused');
  return request;
}

/** Begins a pass like the engine. */
const begin = (lease: LeaseGrant, kind: 'recent' | 'full', until = day(9)) =>
  setup.store.beginPass(lease, { kind, since: day(1), until, completeAsOf: new Date() });

async function reconciledAsOf(): Promise<Date | null> {
  const [row] = await setup.rows(sql<{ at: Date | null }>`
    SELECT reconciled_as_of AS at FROM ${tables.feeds} WHERE name = ${current.name}`);
  return row?.at ?? null;
}

describe('a requested backfill', () => {
  it('is read in the order of the requests, in parallel with the history', async () => {
    const { lease } = await take({ start: 'live' });
    await backfill(day(5), day(6));
    await backfill(day(1), day(2));
    expect(await next('backfill')).toMatchObject({ kind: 'backfill', since: day(5) });
    expect(await next('history')).toMatchObject({ kind: 'history' });
    await finish(lease, 'backfill');
    expect(await next('backfill')).toMatchObject({ since: day(1) });
    await finish(lease, 'backfill');
    expect(await setup.store.nextPass(current.name, 'backfill')).toBeNull();
    expect(await next('history')).toMatchObject({ kind: 'history' });
  });

  it('joins an unfinished one and moves its end out when it begins within that', async () => {
    const { lease } = await take();
    const first = await backfill(day(1), day(10));
    await setup.store.commitPass(passCommit(lease, await next('backfill'), { to: 'half-way' }));
    expect(await backfill(day(2), day(12))).toMatchObject({
      id: first.id,
      joined: true,
      since: day(1),
      until: day(12),
    });
    expect(await backfill(day(10), day(11))).toMatchObject({ id: first.id, joined: true, until: day(12) });
    expect(await next('backfill')).toMatchObject({ cursor: 'half-way', until: day(12) });
  });

  it('joins none when it begins before or after those that are unfinished', async () => {
    const { lease } = await take();
    await backfill(day(5), day(10));
    expect(await backfill(day(4), day(10))).toMatchObject({ joined: false });
    expect(await backfill(day(11), day(12))).toMatchObject({ joined: false });
    expect(await backfill(null, day(2))).toMatchObject({ joined: false, since: null });
    await finish(lease, 'backfill');
    expect(await backfill(day(5), day(10))).toMatchObject({ joined: true, since: day(4) });
  });

  it('joins none when the filters have widened since that began', async () => {
    await take();
    await backfill(day(1), day(10));
    await setup.takeFeed({ name: current.name, ...WIDER });
    expect(await backfill(day(1), day(10))).toMatchObject({ joined: false });
  });

  it('ends at the later of the database’s clock and the last delivery when no end is given', async () => {
    await take();
    const { until } = await backfill(day(1), null);
    expect(Math.abs(until.getTime() - Date.now())).toBeLessThan(60_000);
    const ahead = new Date(Date.now() + DAY);
    await setup.rows(sql`UPDATE ${tables.feeds} SET last_delivered_at = ${ahead} WHERE name = ${current.name}`);
    expect((await backfill(day(1), null)).until).toEqual(ahead);
  });

  it.each([
    [
      'makes the data complete from its beginning when it reaches an hour beyond where that was complete from',
      day(1),
      new Date(day(10).getTime() + HOUR),
      '2026-01-01',
    ],
    ['does not when it falls short of that', day(1), new Date(day(10).getTime() + HOUR - 1), '2026-01-10'],
    ['does not when it begins after that', day(11), day(20), '2026-01-10'],
  ])('%s', async (_, since, until, from) => {
    const { lease, commit } = await setup.takeFeed({ name: current.name, start: day(10) });
    await commit([], { from: null, freshness: { ...claimNothing(), lastDeliveredAt: day(10) } });
    await backfill(since, until);
    await finish(lease, 'backfill');
    const [row] = await setup.rows(
      sql<{ from: string; start: Date }>`SELECT to_char(complete_from AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS "from",
        start_since AS start FROM ${tables.feeds} WHERE name = ${current.name}`,
    );
    expect(row).toEqual({ from, start: day(10) });
    expect(await reconciledAsOf()).toBeNull();
  });
});

describe('a requested recent pass', () => {
  it('begins at the start of the feed when it would begin earlier', async () => {
    await take({ start: day(10) });
    expect(await reconcile('recent', { since: 1e13 })).toMatchObject({ since: day(10), joined: false });
    expect(await reconcile('recent', { since: day(1) })).toMatchObject({ since: day(10) });
    const short = await reconcile('recent', { since: 60_000 });
    expect(short.until.getTime() - (short.since?.getTime() ?? 0)).toBe(60_000);
    const given = await reconcile('recent', { since: day(11), until: day(12) });
    expect(given).toMatchObject({ since: day(11), until: day(12) });
  });

  it('ends at the later of what the feed is complete to and the last delivery, in whole milliseconds', async () => {
    await take();
    const endsAt = async (complete: string, delivered: string) => {
      await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = ${complete}, last_delivered_at = ${delivered}
        WHERE name = ${current.name}`);
      return (await reconcile('recent')).until.toISOString();
    };
    const [early, late] = ['2026-01-01T00:00:00.1234Z', '2026-01-02T00:00:00.1234Z'];
    expect(await endsAt(late, early)).toBe('2026-01-02T00:00:00.124Z');
    expect(await endsAt(early, late)).toBe('2026-01-02T00:00:00.124Z');
    const { lease } = await take();
    await finish(lease, 'recent'); // its end, as read from the database, is the one that is stored
  });

  it('is refused while the feed has not reached its end', async () => {
    const feed = await setup.takeFeed({ name: current.name });
    await feed.commit([]);
    expect(await tryReconcile('recent')).toBeUndefined();
    expect(await passRows(setup, current.name)).toEqual([]);
  });

  it('is not refused while the history is unfinished', async () => {
    await take({ start: 'live' });
    expect(await tryReconcile('recent')).toBeDefined();
  });

  it('replaces the unfinished one, and the leader keeps its lease', async () => {
    const { lease } = await take();
    const unfinished = await begin(lease, 'recent');
    const request = await reconcile('recent', { since: HOUR });
    expect(await passRows(setup, current.name)).toMatchObject([
      { finished: true, cancelled: true },
      { finished: false },
    ]);
    expect(await setup.operatorStore.passes.find(unfinished?.id ?? '')).toMatchObject({ cancelled: true });
    const { holder, epoch } = lease;
    expect((await setup.store.readFeeds([lease.feed])).get(lease.feed)).toMatchObject({ holder, epoch });
    expect(await next('recent')).toMatchObject({ id: request.id, cursor: null });
    await finish(lease, 'recent');
  });

  it('leaves a full pass alone', async () => {
    const { lease } = await take();
    const full = await begin(lease, 'full');
    await reconcile('recent');
    expect(await next('full')).toEqual(full);
  });

  it.each([
    ['fences a page of the unfinished one when that is committed after it', 'request', 'fenced'],
    ['keeps a page of the unfinished one when that is committed before it', 'page', 'committed'],
  ] as const)('%s', async (_, first, outcome) => {
    const { lease } = await take();
    const unfinished = await begin(lease, 'recent');
    if (unfinished === null) throw new Error('no pass was begun');
    const page = passCommit(lease, unfinished, {}, [entryJson({ scanId: `${current.name}-a` })]);
    const queue = [() => reconcile('recent'), () => setup.store.commitPass(page)] as const;
    const [request, commit] = await queued(first === 'request', ...queue);
    expect(commit.kind).toBe(outcome);
    expect(await setup.store.findStored([`${current.name}-a`])).toHaveLength(outcome === 'committed' ? 1 : 0);
    expect(await next('recent')).toMatchObject({ id: request.id, cursor: null });
    expect(await setup.operatorStore.passes.find(unfinished.id)).toMatchObject({
      cancelled: true,
      entries: outcome === 'committed' ? 1 : 0,
    });
  });

  it.each([
    ['is the only one when the leader begins one after it', 'request', 1],
    ['replaces the one that the leader begins before it', 'leader', 2],
  ] as const)('%s', async (_, first, passes) => {
    const { lease } = await take();
    const [request, begun] = await queued(
      first === 'request',
      () => reconcile('recent'),
      () => begin(lease, 'recent'),
    );
    expect(begun === null).toBe(first === 'request');
    expect(await next('recent')).toMatchObject({ id: request.id });
    expect(await passRows(setup, current.name)).toHaveLength(passes);
  });

  it('claims how far the feed is reconciled, and where the next one begins, when it has no end of its own', async () => {
    const { lease } = await take();
    const { until } = await reconcile('recent');
    await finish(lease, 'recent');
    const [row] = await setup.rows(sql<{ same: boolean }>`
      SELECT reconciled_as_of = data_complete_as_of AS same FROM ${tables.feeds} WHERE name = ${current.name}`);
    expect(row).toEqual({ same: true });
    expect(await setup.store.readLastPass(current.name, 'recent')).toMatchObject({ completedUntil: until });
  });

  it('claims neither when it has an end of its own', async () => {
    const { lease } = await take();
    await begin(lease, 'recent');
    await finish(lease, 'recent');
    await setup.rows(sql`UPDATE ${tables.feeds} SET reconciled_as_of = ${day(9)} WHERE name = ${current.name}`);
    await reconcile('recent', { since: day(1), until: day(2) });
    await finish(lease, 'recent');
    expect(await reconciledAsOf()).toEqual(day(9));
    expect(await setup.store.readLastPass(current.name, 'recent')).toMatchObject({ completedUntil: day(9) });
    await begin(lease, 'recent', day(12));
    expect(await setup.store.readLastPass(current.name, 'recent')).toMatchObject({ completedUntil: day(9) });
    await finish(lease, 'recent');
    expect(await setup.store.readLastPass(current.name, 'recent')).toMatchObject({ completedUntil: day(12) });
  });

  it('deletes the passes before the last completed one when it is requested', async () => {
    const { lease } = await take();
    for (const until of [day(7), day(8)]) {
      await begin(lease, 'recent', until);
      await finish(lease, 'recent');
    }
    const first = await reconcile('recent');
    const second = await reconcile('recent');
    expect(await passRows(setup, current.name)).toMatchObject([
      { until: day(8), cancelled: false },
      { until: first.until, cancelled: true },
      { until: second.until, finished: false },
    ]);
  });
});

describe('a requested full pass', () => {
  it('begins at the start of the feed, whatever the range', async () => {
    await take({ start: day(10) });
    expect(await reconcile('full', { since: day(20) })).toMatchObject({ kind: 'full', since: day(10) });
  });

  it('begins at the beginning of the history when the feed did', async () => {
    await take();
    expect(await reconcile('full')).toMatchObject({ since: null });
  });

  it('is refused while the history is unfinished', async () => {
    const { lease } = await take({ start: 'live' });
    expect(await tryReconcile('full')).toBeUndefined();
    await finish(lease, 'history');
    expect(await tryReconcile('full')).toBeDefined();
  });

  it('joins the unfinished one and keeps its progress', async () => {
    const { lease } = await take();
    const unfinished = await begin(lease, 'full');
    if (unfinished === null) throw new Error('no pass was begun');
    await setup.store.commitPass(passCommit(lease, unfinished, { to: 'half-way', entries: 100 }));
    expect(await reconcile('full')).toMatchObject({ id: unfinished.id, joined: true, until: day(9), entries: 100 });
    expect(await next('full')).toMatchObject({ cursor: 'half-way' });
    await finish(lease, 'full');
    expect(await reconcile('full')).toMatchObject({ joined: false, entries: 0 });
  });

  it('replaces the unfinished one when the filters have widened since that began', async () => {
    const { lease } = await take();
    const unfinished = await begin(lease, 'full');
    await setup.takeFeed({ name: current.name, ...WIDER });
    expect(await tryReconcile('full')).toBeUndefined(); // the feed has not caught up since
    await setup.rows(
      sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp() WHERE name = ${current.name}`,
    );
    const request = await reconcile('full');
    expect(request).toMatchObject({ joined: false });
    expect(request.id).not.toBe(unfinished?.id);
    expect(await next('full')).toMatchObject({ id: request.id });
    expect(await passRows(setup, current.name)).toMatchObject([{ cancelled: true }, { finished: false }]);
  });
});

describe('a requested recent pass after a pause', () => {
  const completedUntil = new Date(Date.now() - 5 * 24 * HOUR);
  const afterPause = async () => {
    const { lease } = await take();
    const pass = await begin(lease, 'recent', completedUntil);
    if (pass === null) throw new Error('no pass was begun');
    await setup.store.commitPass(passCommit(lease, pass, { end: 'yes' }));
    return lease;
  };

  it('begins where the last one ended when no time is given', async () => {
    await afterPause();
    expect((await reconcile('recent', { since: HOUR })).since).toEqual(new Date(completedUntil.getTime() - HOUR / 6));
  });

  it('claims no freshness when it begins later', async () => {
    await afterPause();
    await reconcile('recent', { since: new Date(Date.now() - HOUR) });
    const claims = await setup.rows(sql`
      SELECT complete_as_of FROM ${tables.passes} WHERE feed = ${current.name} AND finished_at IS NULL`);
    expect(claims).toEqual([{ complete_as_of: null }]);
  });
});

describe('cancelling passes', () => {
  it('ends those of the given kinds where they are, and the others continue', async () => {
    const { lease } = await take({ start: 'live' });
    const { id } = await backfill(day(1), day(2));
    await backfill(day(4), day(5));
    await begin(lease, 'recent');
    await setup.store.commitPass(passCommit(lease, await next('backfill'), { to: 'half-way', entries: 3 }));
    await setup.rows(sql`ANALYZE ${tables.passes}`); // the table is read in the order on disk, where the changed row is last
    const cancelled = await setup.operatorStore.passes.cancel(current.name, ['backfill']);
    expect(cancelled).toMatchObject([
      { id, kind: 'backfill', entries: 3, cancelled: true, finishedAt: expect.any(Date) },
      { kind: 'backfill', since: day(4), cancelled: true },
    ]);
    expect(await setup.store.nextPass(current.name, 'backfill')).toBeNull();
    expect(await next('history')).toMatchObject({ kind: 'history' });
    expect(await next('recent')).toMatchObject({ kind: 'recent' });
    expect(await setup.operatorStore.passes.cancel(current.name, ['backfill'])).toEqual([]);
  });

  it('leaves the passes of other feeds alone', async () => {
    const { lease } = await take();
    await begin(lease, 'recent');
    expect(await setup.operatorStore.passes.cancel(`${current.name} beside`, ['recent', 'full'])).toEqual([]);
    expect(await next('recent')).toMatchObject({ kind: 'recent' });
  });

  it('claims nothing for the feed', async () => {
    const { lease } = await take({ start: day(10) });
    await begin(lease, 'full');
    await backfill(null, null);
    const before = await setup.rows(sql`SELECT * FROM ${tables.feeds} WHERE name = ${current.name}`);
    expect(await setup.operatorStore.passes.cancel(current.name, ['full', 'backfill'])).toHaveLength(2);
    expect(await setup.rows(sql`SELECT * FROM ${tables.feeds} WHERE name = ${current.name}`)).toEqual(before);
  });
});

/** Runs both so that they queue for the lock of the feed's row: in this order, or the second one first. */
async function queued<A, B>(inOrder: boolean, first: () => Promise<A>, second: () => Promise<B>): Promise<[A, B]> {
  const started = await setup.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT FROM ${tables.feeds} WHERE name = ${current.name} FOR UPDATE`.execute(tx);
    const one = inOrder ? first() : null;
    if (inOrder) await untilWaiting(setup.database.sql, 1);
    const two = second();
    await untilWaiting(setup.database.sql, inOrder ? 2 : 1);
    const last = one ?? first();
    await untilWaiting(setup.database.sql, 2);
    return [last, two] as const;
  });
  return Promise.all(started);
}
