import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as reconcile from '../../../src/cli/commands/reconcile.js';
import { batchOf } from '../../../src/sync/page/check-entries.js';
import type { Pass, PassCommit } from '../../../src/sync/ports/index.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { MIGRATED, type TestFeed, tables, useStore } from '../../support/store.js';

const HOUR = 3_600_000;

interface PassRow {
  readonly kind: string;
  readonly cursor: string | null;
  readonly since: Date | null;
  readonly until: Date;
  readonly complete_as_of: Date | null;
  readonly finished_at: Date | null;
  readonly cancelled: boolean;
}

describe('reconcile', () => {
  const given = useDatabase(MIGRATED);
  const setup = useStore(given);
  let feed: TestFeed;

  beforeEach(async () => {
    await setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.passes}, ${tables.cursorHistory}`);
    feed = await setup.takeFeed();
  });

  const caughtUp = () =>
    feed.commit([], {
      freshness: { end: 'yes', polledAt: performance.now(), completeUpTo: null, lastDeliveredAt: null },
    });
  const run = (args: string, env: Record<string, string> = {}) =>
    runCommand(reconcile, ['reconcile', ...args.split(' ').filter(Boolean)], {
      env: { DATABASE_URL: given.url, ...env },
    });
  const rows = () => setup.rows<PassRow>(sql`SELECT * FROM ${tables.passes} ORDER BY id`);
  const passes = async () =>
    (await rows()).map(({ kind, cursor, since, until, finished_at, cancelled }) => ({
      kind,
      state: finished_at === null ? 'unfinished' : cancelled ? 'cancelled' : 'finished',
      cursor,
      hours: since && Math.round((until.getTime() - since.getTime()) / HOUR),
    }));
  const next = async (kind: 'recent' | 'full') => {
    const pass = await setup.store.nextPass(feed.lease.feed, kind);
    if (pass === null) throw new Error('there is no pass');
    return pass;
  };
  /** Commits an empty page of a pass. */
  const commit = ({ id, begunAt, until, cursor }: Pass, over: Partial<PassCommit> = {}) =>
    setup.store.commitPass({
      ...{ lease: feed.lease, id, begunAt, until, from: cursor, to: 'next', batch: batchOf([]), quarantine: [] },
      ...{ end: 'no', feedOrigin: null, deliveredUpTo: null, entries: 0, pace: null, cachedAt: null },
      ...over,
    });
  const finish = async (kind: 'recent' | 'full') => {
    expect(await commit(await next(kind), { end: 'yes' })).toMatchObject({ kind: 'committed' });
  };

  it('requests a recent pass over the configured window for the daemon to run, also after one has finished', async () => {
    await caughtUp();
    const { out, exitCode } = await run('');
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /^Requested a recent pass from \S+Z to \S+Z\.\ntest runs it; `scanfeed status` shows its progress\.\n$/,
    );
    await finish('recent');
    await run('', { SCANFEED_RECONCILE_WINDOW: '5h' });
    expect(await passes()).toContainEqual({ kind: 'recent', state: 'unfinished', cursor: null, hours: 5 });
  });

  it('requests the given range when --since and --until are given', async () => {
    await caughtUp();
    await run('--since 3d');
    expect(await passes()).toEqual([{ kind: 'recent', state: 'unfinished', cursor: null, hours: 72 }]);
    await run('--since 2026-01-01 --until 2026-01-03');
    expect((await rows()).at(-1)).toMatchObject({
      since: new Date('2026-01-01T00:00:00Z'),
      until: new Date('2026-01-03T00:00:00Z'),
    });
    await run('--until 2026-01-03', { SCANFEED_RECONCILE_WINDOW: '5h' });
    expect((await rows()).at(-1)).toMatchObject({ since: new Date('2026-01-02T19:00:00Z') });
  });

  it('requests a full pass from the start of the feed, and joins an unfinished one', async () => {
    await caughtUp();
    expect((await run('--full')).out).toMatch(/^Requested a full pass from the beginning to \S+Z\.\n/);
    await commit(await next('full'), { to: 'half done', entries: 7 });
    const again = await setup.takeFeed();
    expect((await run('--full')).out).toMatch(
      /^Joined the full pass from the beginning to \S+Z, unfinished since \S+Z \(7 entries read\)\.\n/,
    );
    expect(JSON.parse((await run('--full --json')).out)).toMatchObject({ kind: 'full', entries: 7, joined: true });
    expect(await passes()).toEqual([{ kind: 'full', state: 'unfinished', cursor: 'half done', hours: null }]);
    feed = again;
    expect(await setup.isHeld(feed.lease)).toBe(true);
    await finish('full');
    await run('--full');
    expect(await passes()).toContainEqual({ kind: 'full', state: 'unfinished', cursor: null, hours: null });
  });

  it('requests nothing while the feed has not caught up', async () => {
    const notCaughtUp = { exitCode: 1, err: expect.stringContaining('has not caught up yet') };
    expect(await run('')).toMatchObject(notCaughtUp);
    const delivered = performance.now() - HOUR;
    await feed.commit([entryJson()], {
      freshness: { end: 'no', polledAt: performance.now(), completeUpTo: delivered, lastDeliveredAt: null },
    });
    expect(await run('--full')).toMatchObject(notCaughtUp);
    expect(await passes()).toEqual([]);
    expect(await setup.isHeld(feed.lease)).toBe(true);
  });

  it('requests a pass when the daemon starts none', async () => {
    await caughtUp();
    const off = { SCANFEED_RECONCILE_INTERVAL: 'off', SCANFEED_RECONCILE_FULL_INTERVAL: 'off' };
    expect(await run('', off)).toMatchObject({ exitCode: 0 });
    expect(await run('--full', off)).toMatchObject({ exitCode: 0 });
    expect(await passes()).toMatchObject([{ kind: 'recent' }, { kind: 'full' }]);
  });

  it('requests nothing when the feed has not read the range', async () => {
    await caughtUp();
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = data_complete_as_of - interval '2 hours'`);
    expect(await run('--since 1h')).toMatchObject({
      exitCode: 1,
      err: expect.stringMatching(/--since must be earlier than \S+Z, up to which the feed default is complete/),
    });
    await setup.rows(sql`UPDATE ${tables.feeds} SET start_since = '2026-01-05T00:00:00Z'`);
    expect(await run('--until 2026-01-05T00:00:00Z')).toMatchObject({
      exitCode: 1,
      err: expect.stringMatching(
        /--until must be later than 2026-01-05T\S+Z, where the feed default begins: `scanfeed backfill` reads/,
      ),
    });
    expect(await passes()).toEqual([]);
    await run('--until 2026-01-06');
    expect(await rows()).toMatchObject([{ until: new Date('2026-01-06T00:00:00Z') }]);
  });

  it('ends the unfinished passes, or only the full one with --full, when --cancel is given', async () => {
    await caughtUp();
    await run('');
    await run('--full');
    expect((await run('--cancel --full')).out).toMatch(
      /^Cancelled the full pass from the beginning to \S+Z: 0 entries read\.\n$/,
    );
    expect(await passes()).toMatchObject([
      { kind: 'recent', state: 'unfinished' },
      { kind: 'full', state: 'cancelled' },
    ]);
    await run('--full');
    const cancelled = JSON.parse((await run('--cancel --json')).out) as { kind: string; cancelled: boolean }[];
    expect(cancelled.map((pass) => pass.kind).sort()).toEqual(['full', 'recent']);
    expect(cancelled.every((pass) => pass.cancelled)).toBe(true);
    expect((await run('--cancel')).out).toBe('The feed default has no unfinished recent or full pass.\n');
    expect(await setup.store.nextPass('default', 'recent')).toBe(null);
  });

  it.each([
    '--since 1',
    '--since 2h --full',
    '--until 2h --full',
    '--since 0s',
    '--since 1h --until 2h',
    '--cancel --since 1h',
    '--cancel --until 1h',
    '--cancel --wait',
    '--window 1h',
  ])('refuses %s as wrong usage', async (args) => {
    expect(await run(args)).toMatchObject({ exitCode: 64 });
  });
});

describe('reconcile as a process', () => {
  const setup = useProgram();

  /** Starts a daemon that has read 30 runs in small pages and lost one of them. */
  async function setUp(over: Readonly<Record<string, string>> = {}) {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    const [lost = ''] = service.deliver(30, { deliveredAt: Date.now() - 60_000 });
    const env = { ...setup.environment(service, database), SCANFEED_PAGE_LIMIT: '5', ...over };
    const daemon = setup.daemon(env);
    await daemon.catchesUp();
    await database.query('DELETE FROM scanfeed.runs WHERE scan_id = $1', [lost]);
    const start = (...args: string[]) => setup.program(['reconcile', ...args], env);
    const run = async (...args: string[]) => {
      const program = start(...args);
      const { code } = await program.exited;
      return { code, stdout: program.stdout, stderr: program.stderr };
    };
    const isStored = async () =>
      (await database.query('SELECT FROM scanfeed.runs WHERE scan_id = $1', [lost])).length === 1;
    const passes = () => database.query<PassRow & { entries: string }>('SELECT * FROM scanfeed.passes ORDER BY id');
    return { service, database, env, daemon, start, run, isStored, passes };
  }

  it('shows the result of the running daemon when --wait is given and its intervals are off', async () => {
    const { run, isStored, daemon } = await setUp();
    const { code, stdout } = await run('--since', '1h', '--wait');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Requested a recent pass from \S+Z to \S+Z\.\n30 entries read, 1 run stored that was missing, older or less complete\./,
    );
    expect(stdout).toMatch(/\nThe feed default is reconciled up to \S+Z\.\n$/);
    expect(await isStored()).toBe(true);
    expect(await daemon.metric('scanfeed_reconcile_found_total{revision="first"}')).toBe(1);
  });

  it('leaves a full pass to the next daemon when none is running', async () => {
    const { daemon, env, run, isStored, passes } = await setUp();
    await daemon.stop();
    const { code, stdout } = await run('--full');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Requested a full pass .*\nNo daemon is running; the next `scanfeed run` will run the pass\.\n$/,
    );
    await setup.daemon(env).logs('finished full pass');
    expect(await isStored()).toBe(true);
    expect(await passes()).toMatchObject([{ kind: 'full', cancelled: false, entries: '30' }]);
  });

  it('fails when another command replaces the pass that it waits for', async () => {
    const { service, start, run, passes } = await setUp();
    service.set({ latencyMs: 3_000 });
    const waiting = start('--since', '2h', '--wait', '--json');
    await eventually(passes).toHaveLength(1);
    expect(await run('--since', '1h')).toMatchObject({ code: 0 });
    expect(await waiting.exited).toMatchObject({ code: 1 });
    expect(waiting.stderr).toBe('scanfeed: the recent pass was cancelled or replaced before it finished\n');
    expect(JSON.parse(waiting.stdout)).toMatchObject({ kind: 'recent', cancelled: true });
    service.set({ latencyMs: 0 });
    await eventually(async () => (await passes()).at(-1)?.finished_at).toBeInstanceOf(Date);
  });

  it('ends when the filters widen, because the full pass is no longer run', async () => {
    const { daemon, env, start, passes } = await setUp({ SCANFEED_STATUS: 'completed' });
    await daemon.stop();
    const command = start('--full', '--wait');
    await eventually(passes).toHaveLength(1);
    const widened = setup.daemon({ ...env, SCANFEED_STATUS: 'completed,failed' });
    expect(await command.exited).toMatchObject({ code: 1 });
    expect(command.stderr).toMatch(/include more than when this pass began: run `scanfeed reconcile --full` again$/m);
    await widened.logs('filters changed: earlier runs are missing');
  });

  it('joins the full pass that another command waits for', async () => {
    const { service, start, passes } = await setUp();
    service.set({ latencyMs: 500 });
    const first = start('--full', '--wait');
    await eventually(passes).toHaveLength(1);
    const second = start('--full', '--wait');
    await eventually(() => second.stdout).toMatch(/^Joined the full pass /);
    service.set({ latencyMs: 0 });
    expect(await first.exited).toMatchObject({ code: 0 });
    expect(await second.exited).toMatchObject({ code: 0 });
    expect(await passes()).toMatchObject([{ kind: 'full', entries: '30', finished_at: expect.any(Date) }]);
  });
});
