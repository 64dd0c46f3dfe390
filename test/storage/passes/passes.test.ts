import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { LeaseGrant, NewPass, Pass, PassKind } from '../../../src/sync/ports/index.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { finishPass, passCommit, passRows, useNewFeed, WIDER } from '../../support/passes.js';
import { claimNothing, type TestFeed, tables, useStore } from '../../support/store.js';

const setup = useStore();
const HOUR = 3_600_000;
const START = new Date('2026-03-01T00:00:00Z');
const UNTIL = new Date('2026-03-02T00:00:00Z');
const KINDS: readonly PassKind[] = ['recent', 'full', 'history', 'backfill'];
const current = useNewFeed(setup);
const { take, next } = current;
const status = () => setup.store.readStatus(current.name);

function begin(lease: LeaseGrant, kind: NewPass['kind'], over: Partial<NewPass> = {}): Promise<Pass | null> {
  const completeAsOf = new Date(Date.now() + HOUR); // the feed's own freshness is the limit
  return setup.store.beginPass(lease, { kind, since: START, until: UNTIL, completeAsOf, ...over });
}

/** An unfinished pass of a kind, on a feed at its end. */
async function unfinished(kind: PassKind): Promise<{ readonly lease: LeaseGrant; readonly pass: Pass }> {
  const { lease } = await take({ start: kind === 'history' ? 'live' : 'beginning' });
  if (kind === 'recent' || kind === 'full') await begin(lease, kind);
  if (kind === 'backfill')
    await setup.operatorStore.passes.requestBackfill(current.name, { since: START, until: UNTIL });
  return { lease, pass: await next(kind) };
}

async function feedRow(): Promise<Record<string, unknown> | undefined> {
  const [row] = await setup.rows(sql<Record<string, unknown>>`
    SELECT cursor, start_since, complete_from::text, filters_widened_at, reconciled_as_of FROM ${tables.feeds}
    WHERE name = ${current.name}`);
  return row;
}

describe('the history of a live feed', () => {
  it('is stored with the start of the feed before its first request, once', async () => {
    await setup.takeFeed({ name: current.name, start: 'live' });
    await setup.takeFeed({ name: current.name, start: 'live' });
    const { since } = await setup.store.readPosition(current.name);
    const rows = await passRows(setup, current.name);
    expect(rows).toMatchObject([{ kind: 'history', since: null }]);
    expect((rows[0]?.until.getTime() ?? 0) - (since?.getTime() ?? 0)).toBeCloseTo(HOUR, -3);
  });

  it('is not stored when the feed was first started otherwise', async () => {
    await setup.takeFeed({ name: current.name, start: 'now' });
    await setup.takeFeed({ name: current.name, start: 'live' });
    expect(await passRows(setup, current.name)).toEqual([]);
  });

  it('cannot be read before the feed has read its first page', async () => {
    const feed = await setup.takeFeed({ name: current.name, start: 'live' });
    expect(await setup.store.nextPass(current.name, 'history')).toBeNull();
    await feed.commit([]);
    expect(await next('history')).toMatchObject({ kind: 'history', since: null, cursor: null, entries: 0 });
  });

  it('does not finish with a page that was requested before the feed left its start', async () => {
    const { lease, pass } = await unfinished('history'); // the feed has a cursor by now
    const early = passCommit(lease, pass, { end: 'yes', feedOrigin: null });
    expect(await setup.store.commitPass(early)).toEqual({ kind: 'fenced' });
    expect(await status()).toMatchObject({ initialSyncComplete: false });
  });

  it('does not finish with a page that was requested before a failover lost the cursor of the feed', async () => {
    const { lease, commit } = await setup.takeFeed({ name: current.name, start: 'live' });
    await commit([], { from: null, to: 'on' });
    const { origin: feedOrigin } = await setup.store.readPosition(current.name);
    const early = passCommit(lease, await next('history'), { end: 'yes', feedOrigin });
    await setup.rows(sql`UPDATE ${tables.feeds} SET cursor = NULL WHERE name = ${current.name}`);
    await commit([], { from: null, to: 'further ahead' });
    expect(await setup.store.commitPass(early)).toEqual({ kind: 'fenced' });
    expect(await status()).toMatchObject({ initialSyncComplete: false });
  });

  it('makes the feed complete from the beginning when it is finished', async () => {
    const { lease, pass } = await unfinished('history');
    expect(await status()).toMatchObject({ endReached: true, initialSyncComplete: false });
    expect((await feedRow())?.complete_from).not.toBe('-infinity');
    await finishPass(setup, lease, pass);
    expect(await status()).toMatchObject({ endReached: true, initialSyncComplete: true });
    expect(await feedRow()).toMatchObject({ complete_from: '-infinity', start_since: null });
    expect(await setup.store.nextPass(current.name, 'history')).toBeNull();
  });

  it.each([
    ['a cursor', 'on'],
    ['no cursor', null],
  ])('leaves the freshness unknown when the feed had no cursor, and ends with %s', async (_, cursor) => {
    const feed = await setup.takeFeed({ name: current.name, start: 'live' });
    const polledAt = performance.now();
    const freshness = { end: 'yes' as const, polledAt, completeUpTo: null, lastDeliveredAt: null };
    expect(await feed.commit([], { from: null, to: null, freshness })).toMatchObject({ kind: 'committed' });
    const page = passCommit(feed.lease, await next('history'), { end: 'yes', to: cursor });
    const asOf = { dataCompleteAsOf: null, lagMs: null };
    expect(await setup.store.commitPass(page)).toMatchObject({ kind: 'committed', asOf });
    expect(await feedRow()).toMatchObject({ complete_from: '-infinity', start_since: null, cursor });
    expect(await status()).toMatchObject(asOf);
    // A page that was requested with `since` may have left out runs that the history did not read.
    expect(await feed.commit([], { from: null, to: null, freshness })).toEqual({ kind: 'fenced' });
  });

  const afterRange = new Date(UNTIL.getTime() + 1);
  it.each([
    ['moves to the start of a backfill when the feed has a cursor', 'on', 'on', START, '-infinity'],
    ['stays when the feed is still read by time', null, null, START, START],
    ['stays when the feed got its cursor after the last page was requested', null, 'on', START, START],
    ['stays when the feed was read by time until after the range', 'on', 'on', afterRange, START],
    ['stays when it is not known until when the feed was read by time', 'on', 'on', null, START],
  ])('complete_from %s', async (_, before, cursor, lastDeliveredAt, completeFrom) => {
    const { lease, commit } = await setup.takeFeed({ name: current.name, start: START });
    const freshness = { ...claimNothing(), lastDeliveredAt };
    await commit([], { from: null, to: before, freshness });
    const { origin: feedOrigin } = await setup.store.readPosition(current.name);
    await setup.operatorStore.passes.requestBackfill(current.name, { since: null, until: UNTIL });
    await commit([], { from: before, to: cursor, freshness });
    expect(
      await setup.store.commitPass(passCommit(lease, await next('backfill'), { end: 'yes', feedOrigin })),
    ).toMatchObject({ endClaimed: true });
    const [row] = await setup.rows(
      sql`SELECT complete_from = ${completeFrom} AS right FROM ${tables.feeds} WHERE name = ${current.name}`,
    );
    expect(row).toEqual({ right: true });
  });

  it('does not continue a feed after the history that was rewound to a time', async () => {
    const feed = await setup.takeFeed({ name: current.name, start: 'live' });
    await feed.commit([], { from: null, to: null });
    await setup.rows(sql`UPDATE ${tables.feeds} SET resume_since = ${START} WHERE name = ${current.name}`);
    await finishPass(setup, feed.lease, await next('history'));
    expect(await feedRow()).toMatchObject({ complete_from: '-infinity', cursor: null });
  });

  it.each([
    ['', 0],
    [', by a clock that was set back in between', HOUR],
  ])('does not make it complete when the filters have widened since it began%s', async (_, setBackMs) => {
    await unfinished('history');
    await setup.rows(sql`UPDATE ${tables.passes} SET begun_at = begun_at + ${setBackMs} * interval '1 ms'
      WHERE feed = ${current.name}`);
    const pass = await next('history');
    const { lease } = await setup.takeFeed({ name: current.name, ...WIDER });
    const before = await feedRow();
    await finishPass(setup, lease, pass);
    expect(await feedRow()).toMatchObject({ complete_from: before?.complete_from, start_since: null });
    expect(await setup.store.readLastPass(current.name, 'full')).toMatchObject({
      endedMsAgo: Number.POSITIVE_INFINITY,
    });
  });

  it('counts as a full pass when it is finished, and not before', async () => {
    const { lease, pass } = await unfinished('history');
    expect(await setup.store.readLastPass(current.name, 'full')).toBeNull();
    await finishPass(setup, lease, pass);
    const last = await setup.store.readLastPass(current.name, 'full');
    expect(last?.endedMsAgo).toBeLessThan(60_000);
    expect(last?.completedUntil).toBeNull();
  });
});

describe('a page of a pass', () => {
  it.each(KINDS)('stores its entries and the position of the %s pass, and not the cursor of the feed', async (kind) => {
    const { lease, pass } = await unfinished(kind);
    const commit = passCommit(lease, pass, { deliveredUpTo: UNTIL }, [entryJson({ scanId: `${current.name}-a` })]);
    const outcome = await setup.store.commitPass(commit);
    expect(outcome).toMatchObject({ kind: 'committed', counts: { inserted: 1 } });
    expect(await next(kind)).toMatchObject({ cursor: 'on', deliveredUpTo: UNTIL, entries: 1, stored: 1 });
    expect(await feedRow()).toMatchObject({ cursor: '1-0' });
  });

  it.each([
    ['it was read from another position', async () => ({ from: 'elsewhere' })],
    ['it was read with another end', async () => ({ until: new Date('2026-03-09T00:00:00Z') })],
    ['its epoch is over', async (lease: LeaseGrant) => ({ lease: { ...lease, epoch: lease.epoch - 1 } })],
    [
      'the database lost the pass, and another one got its id',
      async () => {
        await setup.rows(
          sql`UPDATE ${tables.passes} SET begun_at = begun_at + interval '1 ms' WHERE feed = ${current.name}`,
        );
        return {};
      },
    ],
    [
      'the pass was cancelled',
      async () => {
        await setup.operatorStore.passes.cancel(current.name, KINDS);
        return {};
      },
    ],
  ] as const)('writes nothing when %s', async (_, wrong) => {
    for (const kind of KINDS) {
      current.renew();
      const { lease, pass } = await unfinished(kind);
      const entries = [entryJson({ scanId: `${current.name}-a` })];
      const commit = passCommit(lease, pass, await wrong(lease), entries);
      expect(await setup.store.commitPass(commit)).toEqual({ kind: 'fenced' });
      expect(await setup.store.findStored([`${current.name}-a`])).toEqual([]);
      expect(await setup.operatorStore.passes.find(pass.id)).toMatchObject({ idleMs: null, entries: 0 });
    }
  });

  it.each([
    { kept: 'before', end: 'no' },
    { kept: 'before', end: 'yes' },
    { kept: null, end: 'no' },
  ] as const)('writes nothing when the database fell back to position $kept (end: $end)', async (lost) => {
    for (const kind of KINDS) {
      current.renew();
      const { lease, pass } = await unfinished(kind);
      if (lost.kept !== null) await setup.store.commitPass(passCommit(lease, pass, { to: lost.kept }));
      const kept = await next(kind);
      expect(kept.cursor).toBe(lost.kept);
      await setup.store.commitPass(passCommit(lease, kept, { to: 'read' }));
      const read = await next(kind);
      // Like after a failover to a standby that had not received the last commit.
      await setup.rows(sql`UPDATE ${tables.passes} SET cursor = ${kept.cursor} WHERE feed = ${current.name}`);
      const before = await feedRow();
      const { origin: feedOrigin } = await setup.store.readPosition(current.name);
      const commit = passCommit(lease, read, { end: lost.end, to: 'further', feedOrigin });
      expect(await setup.store.commitPass(commit)).toEqual({ kind: 'fenced' });
      expect(await next(kind)).toMatchObject({ cursor: kept.cursor });
      expect(await feedRow()).toEqual(before);
      expect(await setup.store.commitPass({ ...commit, from: kept.cursor })).toMatchObject({ kind: 'committed' });
    }
  });

  it('is written by one of two processes when both read it at the same moment', async () => {
    const { lease, pass } = await unfinished('backfill');
    const both = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.passes} WHERE id = ${pass.id}::bigint FOR UPDATE`.execute(tx);
      const commits = ['one', 'other'].map((to) => setup.store.commitPass(passCommit(lease, pass, { to, entries: 5 })));
      await untilWaiting(setup.database.sql, 2);
      return { commits: Promise.all(commits) };
    });
    expect((await both.commits).map(({ kind }) => kind).sort()).toEqual(['committed', 'fenced']);
    expect(await next('backfill')).toMatchObject({ entries: 5 });
  });

  it('keeps how far the pass has read when it was delivered earlier', async () => {
    const { lease, pass } = await unfinished('backfill');
    await setup.store.commitPass(passCommit(lease, pass, { deliveredUpTo: UNTIL }));
    await setup.store.commitPass(passCommit(lease, await next('backfill'), { deliveredUpTo: START }));
    expect(await next('backfill')).toMatchObject({ deliveredUpTo: UNTIL });
  });

  it('writes nothing when its pass has ended and the next one has begun', async () => {
    const { lease, pass } = await unfinished('recent');
    await finishPass(setup, lease, pass);
    expect(await setup.store.commitPass(passCommit(lease, pass))).toEqual({ kind: 'fenced' });
    await begin(lease, 'recent');
    expect(await setup.store.commitPass(passCommit(lease, pass, { end: 'yes' }))).toEqual({ kind: 'fenced' });
    expect(await next('recent')).toMatchObject({ cursor: null });
    await finishPass(setup, lease, await next('recent'));
  });
});

describe('a recent or full pass', () => {
  it.each([
    ['at the start of the feed when it would begin earlier', new Date('2026-02-01T00:00:00Z'), START],
    ['at the requested time when that is later', new Date('2026-03-01T12:00:00Z'), new Date('2026-03-01T12:00:00Z')],
    ['at the start of the feed when it reads everything', null, START],
  ])('begins %s', async (_, since, begins) => {
    const { lease } = await take({ start: START });
    expect(await begin(lease, 'recent', { since })).toMatchObject({ kind: 'recent', since: begins, until: UNTIL });
    expect(await next('recent')).toMatchObject({ since: begins, until: UNTIL });
  });

  it('begins at the requested time when the feed began at the beginning', async () => {
    const { lease } = await take();
    expect(await begin(lease, 'recent')).toMatchObject({ since: START });
    expect(await begin(lease, 'full', { since: null })).toMatchObject({ since: null });
  });

  it('does not begin when one of its kind is unfinished', async () => {
    const { lease, pass } = await unfinished('recent');
    await setup.store.commitPass(passCommit(lease, pass));
    expect(await begin(lease, 'recent', { until: new Date() })).toBeNull();
    expect(await next('recent')).toMatchObject({ id: pass.id, until: UNTIL, cursor: 'on' });
    expect(await begin(lease, 'full')).not.toBeNull();
    await finishPass(setup, lease, await next('recent'));
    expect(await begin(lease, 'recent')).not.toBeNull();
  });

  it('does not begin when the lease was lost', async () => {
    const { lease } = await take();
    await setup.takeFeed({ name: current.name });
    expect(await begin(lease, 'recent')).toBeNull();
    expect(await passRows(setup, current.name)).toEqual([]);
  });

  it('does not begin when the freshness of the feed is unknown', async () => {
    const { lease } = await setup.takeFeed({ name: current.name });
    expect(await begin(lease, 'recent')).toBeNull();
  });

  it.each(['recent', 'full', 'history'] as const)('exists once when two writers begin a %s pass', async (kind) => {
    const insert = (feed: string) =>
      setup.rows(sql`INSERT INTO ${tables.passes} (feed, kind, until) VALUES (${feed}, ${kind}, now())`);
    await insert(current.name);
    await expect(insert(current.name)).rejects.toThrow(/passes_unfinished/);
    await insert(`${current.name} beside`);
    await setup.rows(sql`UPDATE ${tables.passes} SET finished_at = now() WHERE feed = ${current.name}`);
    await insert(current.name);
  });

  it.each([
    ['what the feed was complete to when its end was derived', '2026-03-01T00:00:00Z', '2026-03-01T00:00:00Z'],
    ['no more than what the feed is complete to', '2026-03-03T00:00:00Z', '2026-03-02T00:00:00Z'],
  ])('reconciles up to %s', async (_, derivedFrom, reconciled) => {
    const { lease } = await take();
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = ${UNTIL} WHERE name = ${current.name}`);
    const pass = await begin(lease, 'recent', { completeAsOf: new Date(derivedFrom) });
    await finishPass(setup, lease, pass ?? (await next('recent')));
    expect(await feedRow()).toMatchObject({ reconciled_as_of: new Date(reconciled) });
  });

  it.each(['recent', 'full'] as const)('claims less or nothing when a cache repeated its pages (%s)', async (kind) => {
    const { lease } = await take();
    const { store } = setup;
    await setup.rows(sql`UPDATE ${tables.feeds} SET complete_from = ${UNTIL}, data_complete_as_of = clock_timestamp()
      WHERE name = ${current.name}`);
    const before = await feedRow();
    const read = async (...cachedForMinutes: readonly number[]) => {
      await setup.rows(sql`DELETE FROM ${tables.passes} WHERE feed = ${current.name}`);
      const pass = await begin(lease, kind, { completeAsOf: new Date() });
      await store.readPosition(current.name); // as before each slice: tells the time of the database
      for (const minutes of cachedForMinutes) {
        const cachedAt = performance.now() - minutes * 60_000;
        await store.commitPass(passCommit(lease, await next(kind), { cachedAt }));
      }
      await finishPass(setup, lease, await next(kind));
      return { until: pass?.until, last: await store.readLastPass(current.name, kind) };
    };
    const old = await read(2, 11, 5);
    expect(await feedRow()).toEqual(before);
    expect(old.last?.completedUntil).toBeNull(); // so the next one begins where it began
    expect(old.last?.endedMsAgo).toBeLessThan(60_000); // but it is not due yet
    const young = await read(2, 5, 1);
    expect(young.last?.completedUntil).toEqual(young.until);
    const [row] = await setup.rows(sql<{ minutes: number }>`
      SELECT extract(epoch FROM clock_timestamp() - reconciled_as_of)::double precision / 60 AS minutes
      FROM ${tables.feeds} WHERE name = ${current.name}`);
    expect(row?.minutes).toBeGreaterThanOrEqual(5);
    expect(row?.minutes).toBeLessThan(7);
  });

  it('does not extend what is complete when a cache repeated a page from before the filters were widened', async () => {
    const { lease } = await take();
    const { store } = setup;
    await setup.rows(sql`UPDATE ${tables.feeds} SET complete_from = ${UNTIL}, data_complete_as_of = clock_timestamp(),
      filters_widened_at = clock_timestamp() - interval '1 minute' WHERE name = ${current.name}`);
    const before = await feedRow();
    await begin(lease, 'full', { completeAsOf: new Date() });
    await store.readPosition(current.name);
    const cachedAt = performance.now() - 2 * 60_000;
    await store.commitPass(passCommit(lease, await next('full'), { cachedAt }));
    await finishPass(setup, lease, await next('full'));
    expect(await feedRow()).toMatchObject({ complete_from: before?.complete_from });
  });

  it('replaces a time up to which the feed was reconciled before the clock of the database was set back', async () => {
    const { lease } = await take();
    await begin(lease, 'recent', { completeAsOf: START });
    await setup.rows(sql`UPDATE ${tables.feeds} SET reconciled_as_of = clock_timestamp() + interval '1 hour'
      WHERE name = ${current.name}`);
    await finishPass(setup, lease, await next('recent'));
    expect(await feedRow()).toMatchObject({ reconciled_as_of: START });
    const before = await begin(lease, 'recent');
    await setup.rows(sql`UPDATE ${tables.passes} SET complete_as_of = clock_timestamp() + interval '1 hour'
      WHERE id = ${before?.id}::bigint`);
    await finishPass(setup, lease, await next('recent'));
    expect(await feedRow()).toMatchObject({ reconciled_as_of: START });
  });

  it('is cancelled and begun again when the filters have widened and it is a full one', async () => {
    const { pass } = await unfinished('full');
    const { lease } = await setup.takeFeed({ name: current.name, ...WIDER });
    expect(await setup.store.nextPass(current.name, 'full')).toBeNull();
    expect(await setup.store.readLastPass(current.name, 'full')).toMatchObject({
      endedMsAgo: Number.POSITIVE_INFINITY,
    });
    expect(await begin(lease, 'full')).toBeNull(); // the feed has not caught up since
    await setup.rows(
      sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp() WHERE name = ${current.name}`,
    );
    const again = await begin(lease, 'full');
    expect(again?.id).not.toBe(pass.id);
    expect(await passRows(setup, current.name)).toMatchObject([{ cancelled: true }, { finished: false }]);
    expect(await begin(lease, 'full')).toBeNull();
  });

  it('does not claim runs that a backfill skipped with the earlier filters when both are finished', async () => {
    const { lease: earlier } = await take({ start: START });
    await setup.operatorStore.passes.requestBackfill(current.name, { since: null, until: UNTIL });
    expect(earlier.epoch).toBe(1);
    const { lease } = await setup.takeFeed({ name: current.name, start: START, ...WIDER });
    // All of this may happen within a millisecond, so the order is made clear: backfill, wider filters, full pass.
    await setup.rows(
      sql`UPDATE ${tables.passes} SET begun_at = begun_at - interval '2 seconds' WHERE feed = ${current.name}`,
    );
    await setup.rows(
      sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp(),
        filters_widened_at = filters_widened_at - interval '1 second' WHERE name = ${current.name}`,
    );
    const backfill = await next('backfill');
    const full = await begin(lease, 'full');
    if (full === null) throw new Error('no pass was begun');
    await finishPass(setup, lease, full);
    expect((await feedRow())?.complete_from).toMatch(/^2026-0[23]-/);
    await finishPass(setup, lease, backfill);
    expect((await feedRow())?.complete_from).toMatch(/^2026-0[23]-/);
    const until = new Date(Date.now() + HOUR); // after the time until which the feed was read by time
    await setup.operatorStore.passes.requestBackfill(current.name, { since: null, until });
    await finishPass(setup, lease, await next('backfill'));
    expect((await feedRow())?.complete_from).toBe('-infinity');
  });

  it.each([
    ['as it is when a cache has kept its last page since before the filters were widened', 3 * HOUR, false],
    ['earlier when a cache has kept its last page since after that', HOUR, true],
  ])('leaves complete_from, if it is a backfill, %s', async (_, ageMs, isExtended) => {
    const { lease } = await take();
    const { store, operatorStore } = setup;
    await setup.rows(sql`UPDATE ${tables.feeds} SET filters_widened_at = clock_timestamp() - interval '2 hours',
      complete_from = clock_timestamp() - interval '2 hours' WHERE name = ${current.name}`);
    const before = await feedRow();
    await operatorStore.passes.requestBackfill(current.name, { since: null, until: null });
    const { origin: feedOrigin } = await store.readPosition(current.name);
    const end = { end: 'yes' as const, feedOrigin, cachedAt: performance.now() - ageMs };
    await store.commitPass(passCommit(lease, await next('backfill'), end));
    expect(await feedRow()).toMatchObject({ complete_from: isExtended ? '-infinity' : before?.complete_from });
  });

  it('continues when the filters have widened and it is a recent one', async () => {
    const { pass } = await unfinished('recent');
    const { lease } = await setup.takeFeed({ name: current.name, ...WIDER });
    expect(await begin(lease, 'recent')).toBeNull();
    expect(await next('recent')).toEqual(pass);
  });
});

describe('the last pass of a kind', () => {
  const ended = async (kind: NewPass['kind'] = 'recent') => setup.store.readLastPass(current.name, kind);
  const finishOne = async ({ lease }: TestFeed, until: Date) => {
    await begin(lease, 'recent', { until });
    await finishPass(setup, lease, await next('recent'));
  };

  it('is unknown until one has ended', async () => {
    const { lease, pass } = await unfinished('recent');
    expect(await ended()).toBeNull();
    await finishPass(setup, lease, pass);
    expect(await ended()).toMatchObject({ completedUntil: UNTIL });
    expect((await ended())?.endedMsAgo).toBeLessThan(60_000);
    expect(await ended('full')).toMatchObject({ completedUntil: null }); // the initial sync
  });

  it('has ended but completed nothing when it was cancelled', async () => {
    const feed = await take();
    await finishOne(feed, START);
    await setup.rows(
      sql`UPDATE ${tables.passes} SET finished_at = now() - interval '1 day' WHERE feed = ${current.name}`,
    );
    await begin(feed.lease, 'recent');
    await setup.operatorStore.passes.cancel(current.name, ['recent']);
    expect(await ended()).toMatchObject({ completedUntil: START });
    expect((await ended())?.endedMsAgo).toBeLessThan(60_000);
  });

  it('stays when a new one begins, and those before it are deleted', async () => {
    const feed = await take();
    await begin(feed.lease, 'full');
    await finishPass(setup, feed.lease, await next('full'));
    await setup.operatorStore.passes.requestBackfill(current.name, { since: null, until: START });
    const days = [1, 2, 3].map((day) => new Date(Date.UTC(2026, 2, day)));
    for (const until of days) await finishOne(feed, until);
    await begin(feed.lease, 'recent');
    const rows = await passRows(setup, current.name);
    expect(rows.filter(({ kind }) => kind === 'recent')).toMatchObject([
      { until: days[2], finished: true },
      { until: UNTIL, finished: false },
    ]);
    expect(rows.map(({ kind }) => kind)).toEqual(['full', 'backfill', 'recent', 'recent']);
    expect(await ended()).toMatchObject({ completedUntil: days[2] });
  });

  it('stays when those after it were cancelled', async () => {
    const feed = await take();
    await finishOne(feed, START);
    for (const _ of [1, 2]) {
      await begin(feed.lease, 'recent');
      await setup.operatorStore.passes.cancel(current.name, ['recent']);
    }
    await finishOne(feed, UNTIL);
    await begin(feed.lease, 'recent');
    expect(await passRows(setup, current.name)).toMatchObject([
      { until: UNTIL, cancelled: false },
      { finished: false },
    ]);
    expect(await ended()).toMatchObject({ completedUntil: UNTIL });
  });
});

describe('the pace', () => {
  it('of the feed and its passes is reported when it is recent, and stored when the lease is current', async () => {
    const { lease, pass } = await unfinished('history');
    const pace = { entriesPerSecond: 812.5, secondsLeft: 90 };
    const report = async () => (await setup.operatorStore.readFeedReports()).find(({ feed }) => feed === current.name);
    await setup.store.storePace(lease, pace);
    await begin(lease, 'full');
    for (const each of [pass, await next('full')]) {
      await setup.store.commitPass(passCommit(lease, each, { pace, deliveredUpTo: START, entries: 7 }));
    }
    const progress = { entries: 7, pace };
    expect(await report()).toMatchObject({
      pace,
      passes: [
        { kind: 'full', ...progress },
        { kind: 'history', ...progress },
      ],
    });
    await setup.rows(
      sql`UPDATE ${tables.passes} SET rate_measured_at = rate_measured_at - interval '2 minutes' WHERE feed = ${current.name}`,
    );
    expect(await report()).toMatchObject({
      passes: [
        { kind: 'full', pace: null },
        { kind: 'history', pace: null },
      ],
    });
    await setup.takeFeed({ name: current.name });
    expect(await report()).toMatchObject({ pace: null });
    await setup.store.storePace(lease, pace);
    expect(await report()).toMatchObject({ pace: null });
  });
});
