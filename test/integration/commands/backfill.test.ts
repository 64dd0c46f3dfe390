import { describe, expect, it, test } from 'vitest';
import * as backfill from '../../../src/cli/backfill.js';
import { runCommand } from '../../support/command.js';
import { useProgram } from '../../support/program/bench.js';
import { eventually } from '../../support/program/daemon.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const bench = useProgram();
const HISTORY = 60;
/** Of each answer, so that a reading takes longer than what is done meanwhile. */
const SLOW = { latencyMs: 1_000 };

/** A service with a history, and a feed that has read it; its pages are small, so that there are some. */
async function startBench(over: Readonly<Record<string, string>> = {}) {
  const service = await bench.startService({ history: HISTORY });
  const database = await bench.createDatabase();
  const env = { ...bench.environment(service, database), SCANFEED_PAGE_LIMIT: '5', ...over };
  const daemon = bench.daemon(env);
  const start = (...args: string[]) => bench.program(['backfill', ...args], env);
  const run = async (...args: string[]) => {
    const program = start(...args);
    const { code } = await program.exited;
    return { code, stdout: program.stdout, stderr: program.stderr };
  };
  const rows = async () => database.query('SELECT * FROM scanfeed.backfills ORDER BY id');
  const entriesRead = async () => Number((await rows()).at(-1)?.entries ?? 0);
  const runs = async () =>
    (await database.query('SELECT scan_id FROM scanfeed.runs ORDER BY 1')).map((row) => row.scan_id);
  /** Deletes some of what was stored; resolves to the scan ids of everything. */
  const lose = async () => {
    const all = await runs();
    await database.query('DELETE FROM scanfeed.runs WHERE scan_id = ANY ($1)', [all.slice(10, 13)]);
    return all;
  };
  const cursor = async () => (await database.query('SELECT cursor FROM scanfeed.feeds'))[0]?.cursor;
  return { service, database, env, daemon, start, run, rows, entriesRead, runs, lose, cursor };
}

async function startCaughtUp() {
  const started = await startBench();
  await started.daemon.catchesUp();
  return started;
}

test('the running daemon reads the stretch again and stores what is missing, and its cursor stays', async () => {
  const { run, runs, lose, cursor, daemon } = await startCaughtUp();
  const all = await lose();
  const before = await cursor();
  const { code, stdout } = await run('--since', '31d');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Reading what was delivered from \S+Z to \S+Z again\.\n/);
  expect(stdout).toContain(`${all.length} entries read, 3 runs stored that were missing`);
  expect(stdout).toContain('is complete from the beginning on.');
  expect(await runs()).toEqual(all);
  expect(await cursor()).toBe(before);
  expect(daemon.logged('read the stretch of the feed that was asked for')).toMatchObject([{ stored: 3 }]);
});

test('without a daemon the command reads it by itself', async () => {
  const { run, runs, lose, cursor, daemon } = await startCaughtUp();
  await daemon.stop();
  const all = await lose();
  const before = await cursor();
  const { code, stdout } = await run('--beginning', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    feed: 'default',
    since: null,
    entries: all.length,
    stored: 3,
    joined: false,
  });
  expect(await runs()).toEqual(all);
  expect(await cursor()).toBe(before);
});

test('interrupted, it goes on where it stood when it is started again', async () => {
  const { service, start, run, runs, lose, entriesRead, daemon, rows } = await startCaughtUp();
  await daemon.stop();
  const all = await lose();
  service.set(SLOW);
  const interrupted = start('--since', '31d');
  await eventually(entriesRead).toBeGreaterThan(0);
  interrupted.signal('SIGINT');
  expect(await interrupted.exited).toMatchObject({ code: 130 });
  expect(interrupted.stderr).toMatch(/interrupted \(\d+ entries read, .*\); the next daemon goes on with it/);
  const read = await entriesRead();
  expect(read).toBeLessThan(all.length);
  service.set({ latencyMs: 0 });
  const { code, stdout } = await run('--since', '31d');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Joined: /);
  expect(await runs()).toEqual(all);
  expect(await rows()).toMatchObject([{ entries: String(all.length) }]);
});

test('interrupted while the database is silent or away, it ends at once and says so', async () => {
  const { service, env, database, entriesRead, daemon } = await startCaughtUp();
  await daemon.stop();
  const proxy = await TcpProxy.to(database.url);
  bench.afterwards(() => proxy.close());
  const start = () =>
    bench.program(['backfill', '--since', '31d'], { ...env, DATABASE_URL: proxy.urlOf(database.url) });

  service.set(SLOW);
  const unanswered = start();
  await eventually(entriesRead).toBeGreaterThan(0);
  proxy.set({ blackhole: true });
  expect(await unanswered.stop('SIGINT')).toEqual({ code: 130, signal: null });
  expect(unanswered.stderr).toMatch(/^scanfeed: interrupted \(\d+ entries read.*; the next daemon goes on with it/m);

  proxy.heal();
  service.set({ latencyMs: 0 });
  service.addFault({ kind: 'status', status: 503, retryAfter: 3600 });
  const refused = start();
  await eventually(() => refused.stderr).toMatch(/^\S.* answered 503: .*; trying again in 60 min$/m);
  await proxy.close();
  expect(await refused.stop('SIGINT')).toEqual({ code: 130, signal: null });
  expect(refused.stderr).toMatch(/^scanfeed: interrupted /m);
});

test('two commands at once read it once', async () => {
  const { service, start, runs, lose, daemon, rows } = await startCaughtUp();
  await daemon.stop();
  const all = await lose();
  service.set(SLOW);
  const first = start('--since', '31d');
  await eventually(rows).toHaveLength(1);
  const second = start('--since', '31d');
  await eventually(() => second.stdout).toMatch(/^Joined: /);
  service.set({ latencyMs: 0 });
  expect(await second.exited).toMatchObject({ code: 0 });
  expect(await first.exited).toMatchObject({ code: 0 });
  expect(await runs()).toEqual(all);
  expect(await rows()).toMatchObject([{ entries: String(all.length) }]);
});

test('a daemon that is started meanwhile takes it over', async () => {
  const { service, env, start, runs, lose, entriesRead, daemon, rows } = await startCaughtUp();
  await daemon.stop();
  const all = await lose();
  service.set(SLOW);
  const command = start('--since', '31d');
  await eventually(entriesRead).toBeGreaterThan(0);
  const another = bench.daemon(env);
  await another.logs('took the feed');
  service.set({ latencyMs: 0 });
  expect(await command.exited).toMatchObject({ code: 0 });
  await another.logs('read the stretch of the feed that was asked for');
  expect(await runs()).toEqual(all);
  expect(await rows()).toMatchObject([{ entries: String(all.length) }]);
});

test('--no-wait leaves it to the daemon, and --stop ends it', async () => {
  const { service, run, rows, database } = await startCaughtUp();
  service.set({ latencyMs: 60_000 });
  expect(await run('--since', '31d', '--no-wait')).toMatchObject({ code: 0 });
  // The database alone is needed for that.
  const stop = () => runCommand(backfill, ['backfill', '--stop'], { env: { DATABASE_URL: database.url } });
  expect((await stop()).out).toMatch(/^Stopped reading what was delivered from \S+Z to \S+Z: 0 entries read\.\n$/);
  expect(await rows()).toMatchObject([{ stopped: true, finished_at: expect.any(Date) }]);
  expect((await stop()).out).toBe('No stretch of the feed default is being read again.\n');
});

test('a feed that has read nothing yet is left to a daemon', async () => {
  const { service, daemon, run } = await startBench();
  service.set({ latencyMs: 60_000 });
  await daemon.logs('took the feed');
  await daemon.stop();
  expect(await run('--since', '31d')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has read nothing yet'),
  });
});

describe('a live start', () => {
  const LIVE = { SCANFEED_START: 'live' };

  it('stores new runs at once and the history behind them, over a kill and a takeover', async () => {
    const { service, daemon, env, runs, database, entriesRead } = await startBench(LIVE);
    const [recent] = service.deliver(1);
    service.set(SLOW);
    await eventually(runs).toContain(recent);
    await eventually(entriesRead).toBeGreaterThan(0);
    const [fresh] = service.deliver(1);
    await eventually(runs).toContain(fresh);
    await daemon.reaches({ caughtUp: true, backfillComplete: false });
    expect(
      (await database.query("SELECT complete_from > now() - interval '2 hours' AS late FROM scanfeed.feeds"))[0]?.late,
    ).toBe(true);
    await daemon.stop('SIGKILL');
    const read = await entriesRead();
    service.set({ latencyMs: 0 });
    const another = bench.daemon(env);
    await another.catchesUp();
    expect(await entriesRead()).toBeGreaterThan(read);
    expect((await runs()).length).toBeGreaterThan(HISTORY * 0.8);
    expect(
      await database.query("SELECT complete_from = '-infinity' AS whole, start_since FROM scanfeed.feeds"),
    ).toEqual([{ whole: true, start_since: null }]);
    // Read once: what the second process read again of the first one's pages is not counted twice.
    expect(await entriesRead()).toBeLessThanOrEqual((await runs()).length);
  });
});

describe('wrong usage', () => {
  it.each([
    [''],
    ['--until 2026-01-01'],
    ['--since 1d --beginning'],
    ['--since 1d --stop'],
    ['--stop --until 1h'],
    ['--since 1h --until 2h'],
    ['--since 2999-01-01'],
    ['--since yesterday'],
  ])('`backfill %s` is refused', async (args) => {
    const { exitCode } = await runCommand(backfill, ['backfill', ...args.split(' ').filter(Boolean)], { env: {} });
    expect(exitCode).toBe(64);
  });
});
