import { describe, expect, it, test } from 'vitest';
import * as backfill from '../../../src/cli/commands/backfill.js';
import * as status from '../../../src/cli/commands/status.js';
import { systemClock } from '../../../src/core/clock.js';
import { runCommand } from '../../support/command.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { unusedPort } from '../../support/unused-port.js';

const setup = useProgram();
const HISTORY = 60;
/** Latency of each answer, so that a backfill takes longer than the test's other actions. */
const SLOW = { latencyMs: 1_000 };

/** Starts a service with a history and a feed that has read it in several small pages. */
async function setUp(over: Readonly<Record<string, string>> = {}) {
  const service = await setup.startService({ history: HISTORY });
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), SCANFEED_PAGE_LIMIT: '5', ...over };
  const daemon = setup.daemon(env);
  const start = (...args: string[]) => setup.program(['backfill', ...args], env);
  const run = async (...args: string[]) => {
    const program = start(...args);
    const { code } = await program.exited;
    return { code, stdout: program.stdout, stderr: program.stderr };
  };
  const rows = async () =>
    database.query("SELECT * FROM scanfeed.passes WHERE kind IN ('history', 'backfill') ORDER BY id");
  const entriesRead = async () => Number((await rows()).at(-1)?.entries ?? 0);
  const runs = async () =>
    (await database.query('SELECT scan_id FROM scanfeed.runs ORDER BY 1')).map((row) => row.scan_id);
  /** Deletes some stored runs and returns the scan ids of all. */
  const lose = async () => {
    const all = await runs();
    await database.query('DELETE FROM scanfeed.runs WHERE scan_id = ANY ($1)', [all.slice(10, 13)]);
    return all;
  };
  const cursor = async () => (await database.query('SELECT cursor FROM scanfeed.feeds'))[0]?.cursor;
  return { service, database, env, daemon, start, run, rows, entriesRead, runs, lose, cursor };
}

/** Returns an environment without the service. */
const onlyDatabase = (url: string) => ({ env: { DATABASE_URL: url } });

async function startCaughtUp() {
  const started = await setUp();
  await started.daemon.catchesUp();
  return started;
}

test('shows the result of the running daemon, which stores missing runs without moving its cursor, when --wait is given', async () => {
  const { run, runs, lose, cursor, daemon } = await startCaughtUp();
  const all = await lose();
  const before = await cursor();
  const { code, stdout } = await run('--since', '31d', '--wait');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Requested a backfill from \S+Z to \S+Z\.\n\d/);
  expect(stdout).toContain(`${all.length} entries read, 3 runs stored that were missing, older or less complete.`);
  expect(stdout).toContain('is complete from the beginning.');
  expect(await runs()).toEqual(all);
  expect(await cursor()).toBe(before);
  expect(daemon.logged('finished backfill')).toMatchObject([{ stored: 3 }]);
});

test('leaves the backfill to the next daemon, and says at once what --wait waits for, when none is running', async () => {
  const { service, env, run, runs, lose, daemon, rows, entriesRead } = await startCaughtUp();
  await daemon.stop();
  const all = await lose();
  expect(await run('--since', '31d')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Requested a backfill .*\nNo daemon is running; the next `scanfeed run` will run the pass/,
    ),
  });
  const standing = { ...systemClock, monotonic: () => 0 };
  const waiting = runCommand(backfill, ['backfill', '--since', '31d', '--wait', '--json'], { env, clock: standing });
  await eventually(() => rows()).toMatchObject([{ finished_at: null }]);
  service.set(SLOW);
  setup.daemon(env);
  await eventually(entriesRead).toBeGreaterThan(15);
  service.set({ latencyMs: 0 });
  const { exitCode, out, err } = await waiting;
  expect(exitCode).toBe(0);
  expect(err).toMatch(
    /^{"progress":"waiting for a daemon: start `scanfeed run` \(0 entries read\)"}\n{"progress":"(waiting for \S+ to begin|entr(y|ies) read)".*}\n$/,
  );
  expect(JSON.parse(out)).toMatchObject({
    ...{ feed: 'default', kind: 'backfill', entries: all.length, stored: 3, cancelled: false, joined: true },
    finishedAt: expect.stringMatching(/Z$/),
  });
  expect(await runs()).toEqual(all);
  expect(await rows()).toMatchObject([{ entries: String(all.length) }]);
});

test('joins the backfill when the same command is started again after an interruption', async () => {
  const { service, env, start, run, runs, lose, entriesRead, daemon, rows } = await startCaughtUp();
  const all = await lose();
  service.set(SLOW);
  const interrupted = start('--since', '31d', '--wait');
  await eventually(entriesRead).toBeGreaterThan(0);
  interrupted.signal('SIGINT');
  expect(await interrupted.exited).toEqual({ code: null, signal: 'SIGINT' });
  await daemon.stop();
  const abandoned = start('--since', '31d', '--wait');
  await eventually(() => abandoned.stdout).toMatch(
    /^Joined the backfill from \S+Z to \S+Z, unfinished since \S+Z \(\d+ entries read.*\nNo daemon is running/,
  );
  expect(await abandoned.stop('SIGINT')).toEqual({ code: null, signal: 'SIGINT' });
  expect(await entriesRead()).toBeLessThan(all.length);
  service.set({ latencyMs: 0 });
  setup.daemon(env);
  expect(await run('--since', '31d', '--wait')).toMatchObject({ code: 0 });
  expect(await runs()).toEqual(all);
  expect(await rows()).toMatchObject([{ entries: String(all.length) }]);
});

test('keeps waiting when the database is briefly unavailable', async () => {
  const { service, env, database, runs, lose, rows } = await startCaughtUp();
  const proxy = await TcpProxy.to(database.url);
  setup.afterwards(() => proxy.close());
  const all = await lose();
  service.set({ latencyMs: 60_000 });
  const url = proxy.urlOf(database.url);
  const command = setup.program(['backfill', '--since', '31d', '--wait'], { ...env, DATABASE_URL: url });
  await eventually(rows).toHaveLength(1);
  const server = proxy.target;
  proxy.target = { host: '127.0.0.1', port: await unusedPort() };
  proxy.cutAll('reset');
  await eventually(() => command.stderr).toMatch(/PostgreSQL.*; retrying in \S+ s$/m);
  proxy.target = server;
  service.set({ latencyMs: 0 });
  expect(await command.exited).toMatchObject({ code: 0 });
  expect(await runs()).toEqual(all);
});

describe('with a running daemon', () => {
  it('returns immediately, and needs only the database, when --wait is missing', async () => {
    const { service, rows, database, runs, lose, env } = await startCaughtUp();
    const all = await lose();
    service.set(SLOW);
    const { exitCode, out } = await runCommand(backfill, ['backfill', '--since', '31d'], onlyDatabase(database.url));
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /^Requested a backfill from \S+Z to \S+Z\.\n\S+ runs it; `scanfeed status` shows its progress\.\n$/,
    );
    expect(await rows()).toMatchObject([{ finished_at: null }]);
    const again = await runCommand(backfill, ['backfill', '--since', '31d', '--json'], { env });
    expect(JSON.parse(again.out)).toMatchObject({ joined: true, finishedAt: null, cancelled: false });
    service.set({ latencyMs: 0 });
    await eventually(runs).toEqual(all);
  });

  it('shows its progress in the status of the daemon and of the feed', async () => {
    const { service, run, rows, daemon, database } = await startCaughtUp();
    service.set(SLOW);
    expect(await run('--since', '31d')).toMatchObject({ code: 0 });
    await daemon.reaches({ passes: [expect.objectContaining({ pass: 'backfill', entries: expect.any(Number) })] });
    const upTo = 'scanfeed_pass_delivered_up_to_timestamp_seconds{pass="backfill"}';
    await eventually(() => daemon.metric(upTo)).toBeGreaterThan(Date.now() / 1_000 - 32 * 86_400);
    const shown = (...args: string[]) => runCommand(status, ['status', ...args], onlyDatabase(database.url));
    await eventually(async () => (await shown()).out).toMatch(/^Backfill: +\S+Z to \S+Z: at \S+Z, \d+ entries\/s/m);
    const [feed] = JSON.parse((await shown('--json')).out) as { passes: unknown[] }[];
    expect(feed?.passes).toMatchObject([{ kind: 'backfill', entries: expect.any(Number), pace: expect.anything() }]);
    service.set({ latencyMs: 0 });
    await eventually(rows).toMatchObject([{ finished_at: expect.any(Date), cancelled: false }]);
    await daemon.reaches({ passes: [] });
  });

  it('ends the backfill, and fails the command that waits for it, when --cancel is given', async () => {
    const { service, start, rows, database } = await startCaughtUp();
    service.set({ latencyMs: 60_000 });
    const waiting = start('--since', '31d', '--wait');
    await eventually(rows).toHaveLength(1);
    const cancel = (...args: string[]) =>
      runCommand(backfill, ['backfill', '--cancel', ...args], onlyDatabase(database.url));
    expect((await cancel()).out).toMatch(/^Cancelled the backfill from \S+Z to \S+Z: 0 entries read\.\n$/);
    expect(await rows()).toMatchObject([{ cancelled: true, finished_at: expect.any(Date) }]);
    expect(await waiting.exited).toMatchObject({ code: 1 });
    expect(waiting.stderr).toMatch(/^scanfeed: the backfill was cancelled before it finished$/m);
    expect((await cancel()).out).toBe('The feed default has no unfinished backfill.\n');
    expect((await cancel('--json')).out).toBe('[]\n');
  });
});

describe('a live start', () => {
  const LIVE = { SCANFEED_START: 'live' };

  it('stores new runs immediately and then the history, even when the daemon is killed and another takes over', async () => {
    const { service, daemon, env, runs, database, entriesRead } = await setUp(LIVE);
    const [recent] = service.deliver(1);
    service.set(SLOW);
    await eventually(runs).toContain(recent);
    await eventually(entriesRead).toBeGreaterThan(0);
    const [fresh] = service.deliver(1);
    await eventually(runs).toContain(fresh);
    await daemon.reaches({ caughtUp: true, initialSyncComplete: false });
    expect(
      (await database.query("SELECT complete_from > now() - interval '2 hours' AS late FROM scanfeed.feeds"))[0]?.late,
    ).toBe(true);
    await daemon.stop('SIGKILL');
    const read = await entriesRead();
    service.set({ latencyMs: 0 });
    const another = setup.daemon(env);
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
    ['--since 1d --cancel'],
    ['--cancel --until 1h'],
    ['--cancel --wait'],
    ['--cancel --beginning'],
    ['--beginning --no-wait'],
    ['--since 1h --until 2h'],
    ['--since 2999-01-01'],
    ['--since yesterday'],
  ])('refuses `backfill %s`', async (args) => {
    const { exitCode } = await runCommand(backfill, ['backfill', ...args.split(' ').filter(Boolean)], { env: {} });
    expect(exitCode).toBe(64);
  });
});
