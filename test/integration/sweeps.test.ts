import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { requestSweep } from '../../src/storage/request-sweep.js';
import { batchOf } from '../../src/sync/page-draft.js';
import type { SweepKind } from '../../src/sync/ports.js';
import { type TestFeed, tables, useStore } from '../support/store.js';

const bench = useStore();
const START = new Date('2026-03-01T00:00:00Z');
const UNTIL = new Date('2026-03-02T00:00:00Z');

/** A feed that has read up to now, which is when a sweep may begin. */
async function complete(over: { name: string; start?: Date }): Promise<TestFeed> {
  const feed = await bench.takeFeed(over);
  await bench.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = now() WHERE name = ${over.name}`);
  return feed;
}

async function idOf(feed: string, kind: SweepKind): Promise<string> {
  return (await bench.store.readSweeps(feed)).find((sweep) => sweep.kind === kind)?.id ?? '';
}

const begin = ({ lease }: TestFeed, kind: SweepKind, since: Date | null, until = UNTIL, completeAsOf = new Date()) =>
  bench.store.beginSweep(lease, { kind, since, until, completeAsOf });

const commitTo = ({ lease }: TestFeed, id: string, finished: boolean, from: string | null = null, to = 'on') =>
  bench.store.commitSweep({
    ...{ lease, kind: 'window', id, from, to, finished, quarantine: [] },
    batch: batchOf([], null),
  });

describe('a sweep', () => {
  it.each([
    ['before the start of the feed begins at the start', new Date('2026-02-01T00:00:00Z'), START],
    ['after the start of the feed begins there', new Date('2026-03-01T12:00:00Z'), new Date('2026-03-01T12:00:00Z')],
    ['of everything begins at the start of the feed', null, START],
  ])('%s', async (name, since, begins) => {
    const feed = await complete({ name, start: START });
    expect(await begin(feed, 'window', since)).toBe(true);
    expect(await bench.store.readSweeps(name)).toMatchObject([{ kind: 'window', since: begins, until: UNTIL }]);
  });

  it('under way is not begun anew by a statement that comes late', async () => {
    const feed = await complete({ name: 'late' });
    const beginTo = (until: Date) => begin(feed, 'window', START, until);
    const commit = async (finished: boolean) =>
      commitTo(feed, await idOf('late', 'window'), finished, finished ? 'on' : null);
    expect(await beginTo(UNTIL)).toBe(true);
    await commit(false);
    expect(await beginTo(new Date())).toBe(false);
    expect(await bench.store.readSweeps('late')).toMatchObject([{ until: UNTIL, cursor: 'on', finished: false }]);
    await commit(true);
    expect(await beginTo(UNTIL)).toBe(true);
  });

  it('is not finished by a statement of the one before that comes late', async () => {
    const feed = await complete({ name: 'outlived' });
    await begin(feed, 'window', START);
    const first = await idOf('outlived', 'window');
    expect(await commitTo(feed, first, true)).toMatchObject({ kind: 'committed' });
    expect(await commitTo(feed, first, false)).toEqual({ kind: 'fenced' }); // it is over
    await begin(feed, 'window', START);
    expect(await commitTo(feed, first, true)).toEqual({ kind: 'fenced' });
    expect(await bench.store.readSweeps('outlived')).toMatchObject([{ cursor: null, finished: false }]);
    expect(await commitTo(feed, await idOf('outlived', 'window'), true)).toMatchObject({ kind: 'committed' });
  });

  it.each([
    ['on', false],
    ['on', true],
    [null, false],
  ])('writes nothing when the database has lost its position %s (finished: %s)', async (lost, finished) => {
    const name = `lost ${lost} ${finished}`;
    const feed = await complete({ name });
    await begin(feed, 'window', START);
    const id = await idOf(name, 'window');
    if (lost === 'on') await commitTo(feed, id, false, null, 'before');
    const kept = (await bench.store.readSweeps(name))[0]?.cursor ?? null;
    await commitTo(feed, id, false, kept, 'read');
    // As after a failover to a standby that had not received the last commit.
    await bench.rows(sql`UPDATE ${tables.sweeps} SET cursor = ${kept} WHERE feed = ${name}`);
    expect(await commitTo(feed, id, finished, 'read', 'further')).toEqual({ kind: 'fenced' });
    expect(await bench.store.readSweeps(name)).toMatchObject([{ cursor: kept, finished: false }]);
    expect(await bench.rows(sql`SELECT reconciled_as_of FROM ${tables.feeds} WHERE name = ${name}`)).toEqual([
      { reconciled_as_of: null },
    ]);
    expect(await commitTo(feed, id, finished, kept, 'read')).toMatchObject({ kind: 'committed' });
  });

  it.each([
    ['what the feed was complete to when its end was reckoned', '2026-03-01T00:00:00Z', '2026-03-01T00:00:00Z'],
    ['no more than what the feed is complete to', '2026-03-03T00:00:00Z', '2026-03-02T00:00:00Z'],
  ])('reconciles up to %s', async (name, reckoned, reconciled) => {
    const feed = await complete({ name });
    await bench.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = ${UNTIL} WHERE name = ${name}`);
    await begin(feed, 'window', START, UNTIL, new Date(reckoned));
    await commitTo(feed, await idOf(name, 'window'), true);
    expect(await bench.rows(sql`SELECT reconciled_as_of FROM ${tables.feeds} WHERE name = ${name}`)).toEqual([
      { reconciled_as_of: new Date(reconciled) },
    ]);
  });

  it('of everything is begun anew where the filters widened meanwhile', async () => {
    const feed = await complete({ name: 'widened' });
    const beginFull = () => begin(feed, 'full', null);
    expect([await beginFull(), await beginFull()]).toEqual([true, false]);
    await bench.rows(sql`UPDATE ${tables.feeds} SET widened_at = clock_timestamp() WHERE name = 'widened'`);
    expect(await beginFull()).toBe(true);
  });

  it('on request begins at the start of the feed at the earliest, too', async () => {
    await complete({ name: 'requested', start: START });
    await bench.rows(sql`UPDATE ${tables.feeds} SET end_reached_at = now() WHERE name = 'requested'`);
    const request = (windowMs: number | null) => requestSweep(bench.database.sql, tables, 'requested', windowMs);
    expect(await request(1e13)).toMatchObject({ since: START });
    expect(await request(null)).toMatchObject({ since: START });
    const short = await request(60_000);
    expect((short?.until.getTime() ?? 0) - (short?.since?.getTime() ?? 0)).toBe(60_000);
  });

  it('of a feed that began at the beginning begins where it is asked to', async () => {
    const feed = await complete({ name: 'beginning' });
    await begin(feed, 'window', START);
    await begin(feed, 'full', null);
    const sweeps = await bench.store.readSweeps('beginning');
    expect(new Map(sweeps.map(({ kind, since }) => [kind, since]))).toEqual(
      new Map([
        ['window', START],
        ['full', null],
      ]),
    );
  });
});
