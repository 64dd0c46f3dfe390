import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FeedFilters, runsOnlyIn, UNFILTERED } from '../../../src/core/feed-filters.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import type { LeaseGrant } from '../../../src/sync/ports/index.js';
import { entryJson } from '../../support/entries.js';
import { VARIOUS_FILTERS } from '../../support/filters.js';
import { passCommit } from '../../support/passes.js';
import { liveAs, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const setup = useStore();
const take = (holder: string) => setup.store.acquireLease(testFeed(), holder);
const live = (holder: string) => liveAs(setup.connection, holder);
/** Takes the feed, which must be possible. */
async function lead(holder: string): Promise<LeaseGrant> {
  await live(holder);
  const lease = await take(holder);
  if (lease === null) throw new Error('no lease');
  return lease;
}
/** The clock of the database decides which process is alive, and a test cannot move it. */
const kill = (holder: string) =>
  setup.rows(sql`UPDATE ${tables.processes} SET renewed_at = clock_timestamp() - interval '1 minute',
    expires_at = clock_timestamp() - interval '1 millisecond' WHERE holder = ${holder}`);
const unusableFor = (holder: string, schema: string) =>
  createProcesses(setup.connection).renewProcess({
    ...{ holder, feeds: 1, unusable: [schema], ttlMs: 30_000 },
  });

beforeEach(async () => {
  await setup.rows(sql`DELETE FROM ${tables.feeds}`);
  await setup.rows(sql`DELETE FROM ${tables.processes}`);
});

describe('the lease of a feed', () => {
  const HOLDERS = ['a', 'b', 'c', 'd'];

  it.each([
    ['is new', async () => {}],
    ['was given back', async () => setup.store.releaseLease(await lead('old'))],
    ['has a dead holder', async () => kill((await lead('old')).holder)],
  ])('goes to one process when several take it at once and it %s', async (_, prepare) => {
    await prepare();
    for (const holder of HOLDERS) await live(holder);
    const leases = await Promise.all(HOLDERS.map(take));
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
  });

  it('stays with a living holder, with a higher epoch, when the holder takes it again', async () => {
    expect(await lead('a')).toMatchObject({ epoch: 1 });
    expect(await lead('a')).toMatchObject({ epoch: 2 });
  });

  it('stays with a living holder when another process takes it', async () => {
    await lead('a');
    await live('b');
    expect(await take('b')).toBeNull();
    expect((await setup.store.readFeeds(['default'])).get('default')).toMatchObject({ holder: 'a', epoch: 1 });
  });

  it.each([
    ['has expired', () => kill('a')],
    ['is missing', () => setup.rows(sql`TRUNCATE ${tables.processes}`)],
    [
      'was renewed before the clock was set back',
      () =>
        setup.rows(sql`UPDATE ${tables.processes} SET renewed_at = renewed_at + interval '1 minute',
          expires_at = expires_at + interval '1 minute'`),
    ],
    ['names the schema of the feed as unusable', () => unusableFor('a', TEST_SCHEMA)],
  ])('goes to another process when the row of its holder %s', async (_, end) => {
    await live('a');
    const leader = await takeFeed(setup.store, testFeed(), 'a');
    await end();
    await live('b');
    const taken = await take('b');
    expect(taken).toMatchObject({ holder: 'b', epoch: 2 });
    expect(await leader.commit([entryJson()])).toEqual({ kind: 'fenced' });
    await setup.store.releaseLease(leader.lease);
    expect((await setup.store.readStatus('default')).leaseHolder).toBe('b');
  });

  it('stays with its holder when that names another schema as unusable', async () => {
    await lead('a');
    await unusableFor('a', 'another');
    await live('b');
    expect(await take('b')).toBeNull();
  });

  it('lets its holder commit while nobody has taken it, even when its row in `processes` has expired', async () => {
    const feed = await setup.takeFeed();
    await kill(feed.lease.holder);
    expect(await feed.counts([entryJson({ scanId: 'late' })])).toMatchObject({ inserted: 1 });
  });

  it('lets only the later holder write when the database has lost commits and grants an epoch twice', async () => {
    const old = await setup.takeFeed({ start: 'now' });
    await setup.rows(sql`DELETE FROM ${tables.feeds}`); // the first grant is lost, and with it where the feed starts
    const later = await takeFeed(setup.store, testFeed(), 'later');
    expect(later.lease.epoch).toBe(old.lease.epoch);
    expect(await old.commit([entryJson()])).toEqual({ kind: 'fenced' });
    expect(await setup.store.movePosition(old.lease, null, { cursor: 'elsewhere', since: null })).toBe(false);
    await setup.store.releaseLease(old.lease);
    expect(await later.counts([entryJson()])).toMatchObject({ inserted: 1 });
  });

  it('is not waited for when a commit locks its row', async () => {
    await lead('a');
    await kill('a');
    const locked = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.feeds} FOR NO KEY UPDATE`.execute(tx);
      return take('b');
    });
    expect(locked).toBeNull();
    expect(await take('b')).toMatchObject({ holder: 'b', epoch: 2 });
  });

  it('is free at once when it is released', async () => {
    await setup.store.releaseLease(await lead('a'));
    expect(await take('b')).toMatchObject({ holder: 'b' });
  });
});

describe('the start of a feed', () => {
  const startOf = async () => (await setup.store.readPosition('default')).since;

  it('is kept when the feed was started before', async () => {
    const start = new Date('2026-01-01T00:00:00Z');
    await setup.store.acquireLease(testFeed({ start }), 'a');
    await setup.store.acquireLease(testFeed({ start: 'beginning' }), 'a');
    expect(await startOf()).toEqual(start);
    expect(await setup.rows(sql`SELECT complete_from FROM ${tables.feeds}`)).toEqual([{ complete_from: start }]);
  });

  it('is an hour before the first start when only new runs are wanted', async () => {
    await setup.store.acquireLease(testFeed({ start: 'now' }), 'a');
    const [row] = await setup.rows(
      sql`SELECT created_at - start_since BETWEEN interval '1 hour' AND interval '61 minutes' AS right FROM ${tables.feeds}`,
    );
    expect(row).toEqual({ right: true });
  });

  it('is that of its creation when the process ends before it takes the feed', async () => {
    const feed = testFeed({ start: 'live' });
    await setup.rows(
      sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
    );
    await setup.rows(
      sql`CREATE TRIGGER refuse BEFORE UPDATE ON ${tables.feeds} FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
    await expect(setup.store.acquireLease(feed, 'a')).rejects.toThrow('refused');
    const start = await startOf();
    await setup.rows(sql`DROP TRIGGER refuse ON ${tables.feeds}`);
    expect(await setup.store.acquireLease(feed, 'b')).toEqual({
      ...{ feed: 'default', holder: 'b', epoch: 1, filtersBefore: null },
    });
    expect(await startOf()).toEqual(start);
    expect(await setup.rows(sql`SELECT kind FROM ${tables.passes}`)).toEqual([{ kind: 'history' }]);
  });

  it('is the beginning of the history when nothing else is set', async () => {
    await take('a');
    expect(await startOf()).toBeNull();
    const rows = await setup.rows(sql`SELECT complete_from::text FROM ${tables.feeds}`);
    expect(rows).toEqual([{ complete_from: '-infinity' }]);
  });
});

describe('another base URL', () => {
  it('is refused with the remedy when the feed has been read', async () => {
    await setup.store.releaseLease(await lead('a'));
    await setup.rows(sql`UPDATE ${tables.feeds} SET last_commit_at = now()`);
    const elsewhere = setup.store.acquireLease(testFeed({ baseUrl: 'https://other.test/v1' }), 'b');
    await expect(elsewhere).rejects.toMatchObject({ kind: 'another_service', action: 'hold' });
    await expect(elsewhere).rejects.toThrow('run `scanfeed forget default`');
    expect((await setup.store.readStatus('default')).leaseHolder).toBeNull();
    expect(await take('a')).toMatchObject({ epoch: 2 });
  });
});

it('another base URL is accepted when nothing was read from the old one', async () => {
  await take('a');
  const moved = testFeed({ baseUrl: 'https://corrected.test/v1' });
  expect(await setup.store.acquireLease(moved, 'a')).toMatchObject({ epoch: 2 });
  expect(await setup.rows(sql`SELECT base_url FROM ${tables.feeds}`)).toEqual([{ base_url: moved.baseUrl }]);
});

describe('changed filters', () => {
  const everything = UNFILTERED;
  const row = async () =>
    (
      await setup.rows(
        sql<Record<string, unknown>>`
          SELECT complete_from::text, filters_widened_at IS NOT NULL AS widened FROM ${tables.feeds}`,
      )
    )[0];
  const reachTheEnd = () =>
    setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = now(), end_reached_at = now()`);

  it('are returned with the previous ones when they change', async () => {
    expect(await take('a')).toMatchObject({ filtersBefore: null });
    expect(await take('a')).toMatchObject({ filtersBefore: null });
    const failed = { ...testFeed().filters, status: ['failed'] } as const;
    expect(await setup.store.acquireLease(testFeed({ filters: failed }), 'a')).toMatchObject({
      filtersBefore: testFeed().filters,
    });
  });

  it('keep the complete range when they include less', async () => {
    await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    await reachTheEnd();
    await take('a');
    expect(await row()).toMatchObject({ complete_from: '-infinity', widened: false });
  });

  it('keep the complete range when they include more before anything was read', async () => {
    await take('a');
    await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    expect(await row()).toMatchObject({ complete_from: '-infinity', widened: false });
  });

  it.each([
    ['a cursor', sql`cursor = 'x'`],
    ['a time to resume from', sql`resume_since = now() - interval '1 day'`],
  ])(
    'make the data complete from now on when they include more, freshness is unknown and the feed has %s',
    async (_, has) => {
      await take('a');
      await setup.rows(sql`UPDATE ${tables.feeds} SET ${has}`);
      const [{ now } = { now: new Date(0) }] = await setup.rows(sql<{ now: Date }>`SELECT clock_timestamp() AS now`);
      await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
      const rows = await setup.rows(sql`
      SELECT complete_from >= ${now} AND filters_widened_at IS NOT NULL AS right FROM ${tables.feeds}`);
      expect(rows).toEqual([{ right: true }]);
    },
  );

  it.each(VARIOUS_FILTERS)(
    'make the data complete from now on when they include more than the filters before: %s',
    async (_, now) => {
      for (const [description, before] of VARIOUS_FILTERS) {
        await setup.rows(sql`DELETE FROM ${tables.feeds}`);
        await setup.store.acquireLease(testFeed({ filters: before }), 'a');
        await reachTheEnd();
        await setup.store.acquireLease(testFeed({ filters: now }), 'a');
        const widened = runsOnlyIn(now, before).length > 0;
        expect({ description, ...(await row()) }).toMatchObject({ description, widened });
      }
    },
  );

  it.each(Object.keys(UNFILTERED))('hid nothing by %s when an earlier version stored them without it', async (name) => {
    await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    await reachTheEnd();
    await setup.rows(sql`UPDATE ${tables.feeds} SET filters = filters - ${name}::text`);
    await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    expect(await row()).toMatchObject({ widened: false });
  });

  it('include more when a later version stored them with a filter that this one does not have', async () => {
    const later = { ...everything, later: 'x' } as FeedFilters;
    await setup.store.acquireLease(testFeed({ filters: later }), 'a');
    await reachTheEnd();
    await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    expect(await row()).toMatchObject({ widened: true });
  });

  it("make the data complete from the last delivery on when they include more and the service's clock is ahead", async () => {
    await take('a');
    const ahead = sql`date_trunc('hour', now()) + interval '2 hours'`;
    await setup.rows(sql`UPDATE ${tables.feeds} SET cursor = 'x', last_delivered_at = ${ahead}`);
    await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    expect(await setup.rows(sql`SELECT complete_from = last_delivered_at AS right FROM ${tables.feeds}`)).toEqual([
      { right: true },
    ]);
  });

  it('make the data complete from now on when they include more, until a full pass has finished', async () => {
    await take('a');
    await reachTheEnd();
    expect((await setup.store.readLastPass('default', 'full'))?.endedMsAgo).toBeLessThan(60_000);
    const lease = await setup.store.acquireLease(testFeed({ filters: everything }), 'a');
    if (lease === null) throw new Error('no lease');
    expect(await row()).toMatchObject({ widened: true, complete_from: expect.stringMatching(/^20/) });
    expect(await setup.store.readLastPass('default', 'full')).toMatchObject({ endedMsAgo: Number.POSITIVE_INFINITY });
    const begun = { kind: 'full', since: null, until: new Date(), completeAsOf: new Date() } as const;
    expect(await setup.store.beginPass(lease, begun)).toBeNull(); // the feed has not caught up since
    await reachTheEnd();
    const pass = await setup.store.beginPass(lease, begun);
    if (pass === null) throw new Error('no pass was begun');
    await setup.store.commitPass(passCommit(lease, pass, { to: 'x' }));
    expect(await row()).toMatchObject({ widened: true });
    expect(await setup.store.commitPass(passCommit(lease, pass, { from: 'x', end: 'yes' }))).toMatchObject({
      kind: 'committed',
    });
    expect(await row()).toMatchObject({ complete_from: '-infinity' });
    expect((await setup.store.readLastPass('default', 'full'))?.endedMsAgo).toBeLessThan(60_000);
  });
});
