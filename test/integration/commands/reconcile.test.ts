import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as reconcile from '../../../src/cli/reconcile.js';
import { batchOf } from '../../../src/sync/page-draft.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
const HOUR = 3_600_000;
let feed: TestFeed;

beforeEach(async () => {
  await bench.rows(sql`TRUNCATE ${tables.feeds}, ${tables.sweeps}, ${tables.cursorHistory}`);
  feed = await bench.takeFeed();
});

const caughtUp = () =>
  feed.commit([], {
    freshness: { atEnd: true, polledAt: performance.now(), lastDelivered: null, lastDeliveredAt: null },
  });
const run = (args: string, env: Record<string, string> = {}) =>
  runCommand(reconcile, ['reconcile', ...args.split(' ').filter(Boolean)], {
    env: { DATABASE_URL: given.url, ...env },
  });
const sweeps = async () => {
  const found = await bench.store.readSweeps('default');
  return found.map(({ kind, finished, since, until, cursor }) => ({
    kind,
    finished,
    cursor,
    hours: since && Math.round((until.getTime() - since.getTime()) / HOUR),
  }));
};
const finish = (kind: 'window' | 'full') =>
  bench.rows(sql`UPDATE ${tables.sweeps} SET finished_at = clock_timestamp(), cursor = 'x' WHERE kind = ${kind}`);

describe('reconcile', () => {
  it('begins a sweep of the configured window for the daemon to run, after the last one was finished', async () => {
    await caughtUp();
    const { out, exitCode } = await run('');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^A sweep from \S+Z to \S+Z is due now\. test begins within a minute\.\n$/);
    await finish('window');
    await run('', { SCANFEED_RECONCILE_WINDOW: '5h' });
    expect(await sweeps()).toContainEqual({ kind: 'window', finished: false, cursor: null, hours: 5 });
  });

  it('takes a window of its own', async () => {
    await caughtUp();
    await run('--window 3d');
    expect(await sweeps()).toContainEqual({ kind: 'window', finished: false, cursor: null, hours: 72 });
  });

  it('voids the progress of a sweep under way, which would be noted on the new one', async () => {
    await caughtUp();
    await bench.store.beginSweep(feed.lease, {
      ...{ kind: 'window', since: null, until: new Date(), completeAsOf: new Date() },
    });
    const before = (await bench.store.readSweeps(feed.lease.feed)).find(({ kind }) => kind === 'window');
    await run('');
    const page = {
      lease: feed.lease,
      kind: 'window',
      id: before?.id ?? '',
      from: null,
      to: 'old',
      batch: batchOf([], null),
    } as const;
    expect(await bench.store.commitSweep({ ...page, quarantine: [], finished: true })).toEqual({ kind: 'fenced' });
    expect(await sweeps()).toContainEqual({ kind: 'window', finished: false, cursor: null, hours: 2 });
  });

  it('reads up to the last delivery where the clock of the service is ahead', async () => {
    const ahead = new Date(Date.now() + HOUR);
    await feed.commit([entryJson()], {
      freshness: { atEnd: true, polledAt: performance.now(), lastDelivered: null, lastDeliveredAt: ahead },
    });
    expect(JSON.parse((await run('--json')).out)).toMatchObject({ kind: 'window', until: ahead.toISOString() });
  });

  it('begins a full sweep from the start of the feed, and leaves one that is under way alone', async () => {
    await caughtUp();
    expect((await run('--full')).out).toMatch(/^A full sweep from the beginning of the history to \S+Z is due now\. /);
    await bench.rows(sql`UPDATE ${tables.sweeps} SET cursor = 'half done'`);
    const again = await bench.takeFeed();
    expect((await run('--full')).out).toMatch(/ is under way since \S+Z; it goes on\.\n$/);
    expect(await sweeps()).toContainEqual({ kind: 'full', finished: false, cursor: 'half done', hours: null });
    expect(await bench.store.renewLease(again.lease, 30_000)).toBe(true);
    await finish('full');
    await run('--full');
    expect(await sweeps()).toContainEqual({ kind: 'full', finished: false, cursor: null, hours: null });
  });

  it('says who runs it when no daemon does', async () => {
    await caughtUp();
    await bench.store.releaseLease(feed.lease);
    expect((await run('')).out).toContain('No daemon runs: the next one begins with it.');
  });

  it('has nothing to do while the history is still being read', async () => {
    const stillBeingRead = { exitCode: 1, err: expect.stringContaining('still being read') };
    expect(await run('')).toMatchObject(stillBeingRead);
    const delivered = performance.now() - HOUR;
    await feed.commit([entryJson()], {
      freshness: { atEnd: false, polledAt: performance.now(), lastDelivered: delivered, lastDeliveredAt: null },
    });
    expect(await run('--full')).toMatchObject(stillBeingRead);
    expect(await sweeps()).toEqual([]);
    expect(await bench.store.renewLease(feed.lease, 30_000)).toBe(true);
  });

  it('does not promise a sweep that the settings switch off', async () => {
    await caughtUp();
    expect(await run('', { SCANFEED_RECONCILE_INTERVAL: 'off' })).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('SCANFEED_RECONCILE_INTERVAL is off'),
    });
    expect(await run('--full', { SCANFEED_RECONCILE_FULL_INTERVAL: 'off' })).toMatchObject({ exitCode: 1 });
    expect(await run('--full', { SCANFEED_RECONCILE_INTERVAL: 'off' })).toMatchObject({ exitCode: 0 });
  });

  it.each(['--window 1', '--window 2h --full', '--window 0s'])('refuses %s as wrong usage', async (args) => {
    expect(await run(args)).toMatchObject({ exitCode: 64 });
  });
});
