import { createServer, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { type Daemon, eventually } from '../../support/program/daemon.js';
import { Program } from '../../support/program/program.js';
import { type DaemonDatabase, useProgram } from '../../support/program/setup.js';
import { unusedPort } from '../../support/unused-port.js';

const setup = useProgram();

/** Durations longer than any test. */
const NEVER = { SCANFEED_LEASE_TTL: '1h', SCANFEED_REQUEST_TIMEOUT: '10m', SCANFEED_SHUTDOWN_TIMEOUT: '10m' };

async function expectGivenBack(database: DaemonDatabase): Promise<void> {
  expect(await database.query('SELECT lease_holder, lease_home FROM scanfeed.feeds')).toEqual([
    { lease_holder: null, lease_home: null },
  ]);
}

function expectOrderlyEnd(daemon: Daemon): void {
  expect(daemon.logged().at(-1)).toMatchObject({ level: 'info', message: 'stopped' });
  expect(daemon.stderr).toBe('');
}

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  test('ends the daemon with 0, and releases the lease and the port immediately', async () => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    service.deliver(20);
    const first = setup.daemon({ ...setup.environment(service, database), ...NEVER });
    await eventually(async () => (await first.status()).runsWritten).toBe(20);
    const admin = await first.adminUrl();

    expect(await first.stop(signal)).toEqual({ code: 0, signal: null });
    expectOrderlyEnd(first);
    await expectGivenBack(database);
    await expect(fetch(`${admin}/livez`)).rejects.toThrow();

    service.deliver(1);
    const second = setup.daemon({ ...setup.environment(service, database), ...NEVER });
    await eventually(async () => (await second.status()).runsWritten).toBe(1);
  });

  test('ends the daemon while the service hangs', async () => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    service.addFault({ kind: 'hang' });
    const hanging = service.requests.next();
    const daemon = setup.daemon({ ...setup.environment(service, database), ...NEVER });
    await hanging;
    expect(await daemon.stop(signal)).toEqual({ code: 0, signal: null });
    expectOrderlyEnd(daemon);
    await expectGivenBack(database);
  });
});

test('SIGTERM ends the daemon while it waits for a Retry-After of an hour', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.addFault({ kind: 'status', status: 503, retryAfter: 3600 });
  const daemon = setup.daemon({ ...setup.environment(service, database), ...NEVER });
  const { pauseMs } = await daemon.logs('failed, retrying', { stage: 'feed', kind: 'http_503' });
  expect(pauseMs).toBeGreaterThanOrEqual(3_600_000);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expectOrderlyEnd(daemon);
});

test('SIGTERM ends the daemon with 0 within its time while another session blocks the database', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(20);
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_SHUTDOWN_TIMEOUT: '1s' });
  await daemon.catchesUp();
  const blocker = await blockFeeds(database);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expect(daemon.stderr).toBe('scanfeed: not stopped within 1 s of the signal; exiting anyway\n');
  await blocker.query('ROLLBACK');
});

test('SIGTERM ends the daemon immediately while the database accepts connections but does not answer', async () => {
  const service = await setup.startService();
  const silent = await listenInSilence();
  const daemon = setup.daemon({
    ...setup.environment(service, { url: `postgres://someone:${setup.secrets.password}@127.0.0.1:${silent.port}/app` }),
    ...NEVER,
  });
  await silent.connected;
  await daemon.adminUrl();
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expectOrderlyEnd(daemon);
});

test('a second SIGINT ends the daemon immediately', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_SHUTDOWN_TIMEOUT: '10m' });
  await daemon.catchesUp();
  const blocker = await blockFeeds(database);
  daemon.signal('SIGINT');
  await daemon.logs('stopping', { signal: 'SIGINT' });
  expect(await daemon.stop('SIGINT')).toEqual({ code: 130, signal: null });
  await blocker.query('ROLLBACK');
});

test('a bug ends the daemon with 1 and is reported as a bug', async () => {
  const port = await unusedPort();
  const env = setup.environment(
    { url: 'https://service.example/v1' },
    { url: `postgres://someone@127.0.0.1:${port}/app` },
  );
  // The pause after the first failure is random.
  const broken = 'Math.random = () => { throw new Error("chance is broken"); };';
  // Not started by the setup, which accepts no stack trace: a bug shows its stack.
  const program = new Program(['run'], { ...env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURI(broken)}` });
  expect(await program.exited).toEqual({ code: 1, signal: null });
  expect(program.stderr).toContain('scanfeed: this is a bug in scanfeed: Error: chance is broken\n');
});

test('SIGTERM ends the daemon immediately while its migration waits for another', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const migrator = await database.connect();
  await migrator.query(`BEGIN; SELECT pg_advisory_xact_lock(7262173001)`);
  const daemon = setup.daemon({ ...setup.environment(service, database), ...NEVER });
  await waitingForLock(database);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expectOrderlyEnd(daemon);
  await migrator.query('ROLLBACK');
});

/** Locks every table of the feed until its transaction ends. Resolves once the daemon waits for it. */
async function blockFeeds(database: DaemonDatabase) {
  const blocker = await database.connect();
  await blocker.query('BEGIN; LOCK TABLE scanfeed.feeds IN ACCESS EXCLUSIVE MODE');
  await waitingForLock(database);
  return blocker;
}

/** Resolves once the daemon waits for a lock that another session holds. */
async function waitingForLock(database: DaemonDatabase): Promise<void> {
  const waiting = () =>
    database.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'scanfeed' AND wait_event_type = 'Lock'`,
    );
  await eventually(async () => (await waiting()).length).toBeGreaterThan(0);
}

async function listenInSilence() {
  const sockets = new Set<Socket>();
  let connect = () => {};
  const connected = new Promise<void>((resolve) => {
    connect = resolve;
  });
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    connect();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  setup.afterwards(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { connected, port: (server.address() as { port: number }).port };
}
