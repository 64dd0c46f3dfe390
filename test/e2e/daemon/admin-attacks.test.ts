import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { samplesOf } from '../../support/observed.js';
import { type Attack, attack } from '../../support/program/attacker.js';
import { type Daemon, eventually } from '../../support/program/daemon.js';
import { peakMiB } from '../../support/program/peak-memory.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();
const PATIENCE = { timeout: 240_000 };
const DESCRIPTORS = 1_024;
/** The probes of the Helm chart: the timeout of one, milliseconds, and how many in a row may fail. */
const PROBE = { timeoutMs: 5_000, failureThreshold: 3 };

const GET_PAGE = 'GET / HTTP/1.1\r\nHost: scanfeed\r\n\r\n';
const ATTACKS: Readonly<Record<string, Attack>> = {
  '5 connections pipeline 5,000 requests each': { connections: 5, perSecond: 1_000, request: GET_PAGE.repeat(5_000) },
  '200 connections a second pipeline 1,500 requests each': {
    ...{ connections: 1_000, perSecond: 200 },
    request: GET_PAGE.repeat(1_500),
  },
  '10,000 connections stay silent': { connections: 10_000, perSecond: 2_000, request: '' },
  '2,000 connections a second read no answer': { connections: 10_000, perSecond: 2_000, request: GET_PAGE },
};

describe.runIf(process.platform === 'linux')('a daemon with 256 MiB and 1,024 descriptors', () => {
  test.each(Object.entries(ATTACKS))('stores runs and answers probes while %s', PATIENCE, async (_, planned) => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    service.deliver(5);
    const env = { ...setup.environment(service, database), SCANFEED_POLL_INTERVAL: '1s' };
    const daemon = setup.daemonInImage(env);
    await promisify(execFile)('prlimit', ['--pid', String(daemon.pid), `--nofile=${DESCRIPTORS}`]);
    await daemon.catchesUp();
    const url = await daemon.adminUrl();
    const usual = await descriptors(daemon);

    const finished = new AbortController();
    const probing = probe(daemon, url, finished.signal);
    const release = await attack(url, planned);
    setup.afterwards(release);
    // New sessions need descriptors.
    await database.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND pid <> pg_backend_pid()',
      [database.role],
    );
    service.deliver(5);
    const stored = () => database.query('SELECT count(*)::int AS runs FROM scanfeed.runs');
    await eventually(stored).toEqual([{ runs: 10 }]);
    // The attacker closes nothing.
    await eventually(() => descriptors(daemon)).toBeLessThanOrEqual(usual + 10);
    finished.abort();
    const worst = await probing;

    expect(worst.failuresInARow).toBeLessThan(PROBE.failureThreshold);
    expect(worst.lagSeconds).toBeLessThan(15);
    expect(worst.descriptors).toBeLessThan(DESCRIPTORS / 4);
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
    expect(await ask(`${url}/livez`)).toBe('alive\n');
    await daemon.catchesUp();
  });
});

test('ends on SIGTERM while 50 silent and half-open connections are held', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_SHUTDOWN_TIMEOUT: '10m' });
  const url = await daemon.adminUrl();
  await daemon.catchesUp();
  for (const request of ['', 'GET / HTTP/1.1\r\n']) {
    setup.afterwards(await attack(url, { connections: 25, perSecond: 1_000, request }));
  }
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
});

/** Requests `/livez` and `/metrics` in turn until the signal aborts. Returns the worst results. */
async function probe(daemon: Daemon, url: string, signal: AbortSignal) {
  const worst = { failuresInARow: 0, lagSeconds: 0, descriptors: 0 };
  const failures = { '/livez': 0, '/metrics': 0 };
  while (!signal.aborted && daemon.running) {
    for (const path of ['/livez', '/metrics'] as const) {
      const body = await ask(`${url}${path}`).catch(() => null);
      failures[path] = body === null ? failures[path] + 1 : 0;
      worst.failuresInARow = Math.max(worst.failuresInARow, failures[path]);
      const lag = body === null ? undefined : samplesOf(body).get('scanfeed_lag_seconds');
      worst.lagSeconds = Math.max(worst.lagSeconds, lag ?? 0);
      worst.descriptors = Math.max(worst.descriptors, await descriptors(daemon).catch(() => 0));
    }
    await sleep(50);
  }
  return worst;
}

/** Sends one request on a connection of its own, as probes do. */
function ask(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, timeout: PROBE.timeoutMs }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`returned ${response.statusCode}`));
      });
    });
    request.on('error', reject).on('timeout', () => request.destroy(new Error('timed out')));
  });
}

async function descriptors(daemon: Daemon): Promise<number> {
  return (await readdir(`/proc/${daemon.pid}/fd`)).length;
}
