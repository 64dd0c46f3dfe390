import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { constants } from 'node:os';
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { type AdminServerOptions, startAdminServer } from '../../src/observability/admin/admin-server.js';
import { createLiveness, livenessOf } from '../../src/observability/admin/liveness.js';
import { createReadiness } from '../../src/observability/admin/readiness.js';
import type { StatusReport } from '../../src/observability/status-page/status-report.js';
import { captureLeaks } from '../support/canaries/capture-leaks.js';
import { gate, handClock, recordingLogger, testMetrics } from '../support/observed.js';
import { renderRunbooks } from '../support/runbooks.js';

beforeAll(renderRunbooks);

const REPORT: StatusReport = {
  feed: 'invoices',
  version: '1.2.3',
  startedAt: '2026-01-01T00:00:00.000Z',
  role: 'leader',
  leaseHolder: 'pod-1',
  caughtUp: true,
  initialSyncComplete: true,
  dataCompleteAsOf: '2026-01-01T00:00:01.000Z',
  lagSeconds: 1.5,
  lastPollAt: null,
  lastCommitAt: null,
  lastDeliveredAt: null,
  stuckSince: null,
  acceptsBadUntil: null,
  runsWritten: 7,
  passes: [],
  pendingResults: 2,
  quarantinedEntries: null,
  runsWithoutData: null,
  currentErrors: [],
};

/** A feed without charts. */
const shownFeed = (report: StatusReport) => ({ name: report.feed, report: () => report, recent: () => [] });

type AdminServer = ReturnType<typeof startAdminServer>;
const running = new Set<AdminServer>();
afterEach(async () => {
  await Promise.all([...running].map((server) => server.close()));
  running.clear();
});

async function start(options: Partial<AdminServerOptions> = {}) {
  const clock = handClock();
  const liveness = createLiveness(clock.monotonic);
  const readiness = createReadiness();
  const log = recordingLogger();
  const server = startAdminServer({
    host: '127.0.0.1',
    port: 0,
    metrics: testMetrics().metrics,
    liveness: livenessOf(() => [{ name: 'invoices', liveness }]),
    readiness,
    version: '1.2.3',
    single: true,
    feeds: () => [shownFeed(REPORT)],
    logger: log.logger,
    clock: { ...clock, sleep: () => new Promise<never>(() => {}) },
    signal: new AbortController().signal,
    ...options,
  });
  running.add(server);
  await server.settled;
  const get = (path: string, method = 'GET') => ask(server, path, method);
  return { server, clock, liveness, readiness, log, get };
}

async function ask(server: AdminServer, path: string, method: string) {
  const request = httpRequest({ host: '127.0.0.1', port: server.address()?.port, path, method, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  captureLeaks(path, body);
  return { status: response.statusCode, headers: response.headers, body };
}

interface TcpBinding {
  readonly TCP: { readonly prototype: { bind6(): number } };
}

/** Lets Node fail to bind to addresses of IPv6, as on a machine without it. */
function withoutIPv6(code: 'EAFNOSUPPORT' | 'EADDRNOTAVAIL'): void {
  const { TCP } = (process as unknown as { binding(name: string): TcpBinding }).binding('tcp_wrap');
  const spy = vi.spyOn(TCP.prototype, 'bind6').mockReturnValue(-constants.errno[code]);
  onTestFinished(() => spy.mockRestore());
}

test('serves IPv4 and IPv6 when it listens on every address', async () => {
  const { server } = await start({ host: '::' });
  const { port } = server.address() as AddressInfo;
  for (const host of ['127.0.0.1', '[::1]']) {
    expect((await fetch(`http://${host}:${port}/livez`)).status, host).toBe(200);
  }
});

test.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL'] as const)('serves IPv4 when there is no IPv6: %s', async (code) => {
  withoutIPv6(code);
  const { server, log } = await start({ host: '::' });
  expect(server.address()).toMatchObject({ address: '0.0.0.0', family: 'IPv4' });
  expect(log.lines.map(({ message }) => message)).toEqual(['admin server is listening']);
});

describe('the admin server', () => {
  test('serves the metrics', async () => {
    const { get } = await start();
    const { status, headers, body } = await get('/metrics');
    expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(body).toContain('scanfeed_lag_seconds{feed="invoices"} +Inf');
  });

  test('answers 503 when the loop has not ticked for 60 s beyond its announced step', async () => {
    const { get, clock, liveness } = await start();
    clock.advance(59_999);
    expect(await get('/livez')).toMatchObject({ status: 200, body: 'alive\n' });
    clock.advance(1);
    expect(await get('/livez')).toMatchObject({
      status: 503,
      body: 'the sync loop of invoices has been unresponsive for 60 s\n',
    });
    liveness.ticked(0);
    expect((await get('/livez')).status).toBe(200);
    liveness.ticked(3_600_000);
    clock.advance(3_659_999);
    expect((await get('/livez')).status).toBe(200);
    clock.advance(1);
    expect((await get('/livez')).status).toBe(503);
  });

  test('stays ready when the database becomes unavailable later', async () => {
    const { get, readiness } = await start();
    expect(await get('/readyz')).toMatchObject({ status: 503, body: 'not ready: starting\n' });
    readiness.waitingFor('the schema is older than\nthis release');
    expect(await get('/readyz')).toMatchObject({
      status: 503,
      body: 'not ready: the schema is older than this release\n',
    });
    readiness.ready();
    expect(await get('/readyz')).toMatchObject({ status: 200, body: 'ready\n' });
    readiness.waitingFor('the database is away');
    expect((await get('/readyz')).status).toBe(200);
  });

  test('renders the metrics again only after a pause, whatever the query, and answers probes meanwhile', async () => {
    let now = 0;
    const rests: { ms: number; end: () => void }[] = [];
    const maxAgeMs = 10_000; // of each connection
    const sleep = (ms: number) =>
      new Promise<void>((resolve) => {
        if (ms !== maxAgeMs) rests.push({ ms, end: resolve });
      });
    const monotonic = () => {
      now += 40;
      return now;
    };
    const { get } = await start({ single: false, clock: { ...systemClock, monotonic, sleep } });
    await get('/metrics');
    let isAnswered = false;
    const second = get('/metrics?again').finally(() => {
      isAnswered = true;
    });
    expect((await get('/livez')).status).toBe(200);
    expect([isAnswered, rests.map(({ ms }) => ms)]).toEqual([false, [760]]);
    rests[0]?.end();
    expect((await second).status).toBe(200);
  });

  test('spends at most a twentieth of the time on a thousand open tabs, in a process with one feed too', async () => {
    const RENDERING_MS = 5;
    let rendered = 0;
    const report = () => {
      rendered += 1;
      for (const begun = performance.now(); performance.now() - begun < RENDERING_MS; );
      return REPORT;
    };
    const { get } = await start({ clock: systemClock, feeds: () => [{ ...shownFeed(REPORT), report }] });
    const begun = performance.now();
    for (let tabs = 0; tabs < 1_000; tabs += 100) {
      const answers = await Promise.all(Array.from({ length: 100 }, (_, tab) => get(`/?tab=${tabs + tab}`)));
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    }
    expect(rendered).toBeLessThanOrEqual(1 + (performance.now() - begun) / (20 * RENDERING_MS));
  });

  test('serves the runbooks as pages whose links lead to each other, to the status and to the documentation', async () => {
    const { get, log } = await start();
    const names = (await readdir('docs/runbooks')).filter((name) => name !== 'README.md');
    const index = await get('/runbooks/');
    expect(index.body).toBe((await get('/runbooks/README.md')).body);
    for (const name of names) expect(index.body).toContain(`<a href="${name}">`);
    for (const name of [...names, '']) {
      const { status, headers, body } = await get(`/runbooks/${name}`);
      expect([status, headers['content-type']], name).toEqual([200, 'text/html; charset=utf-8']);
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'/);
      expect(body).toContain(`<h1>${name === '' ? 'Runbooks' : name.slice(0, -'.md'.length)}</h1>`);
      expect(body).not.toMatch(/\*\*|```|\n\|/);
      const links = [...body.matchAll(/<a href="([^"]*)"/g)].map(([, link = '']) => link);
      const outside = links.filter((link) => link.startsWith('https://github.com/scanfeed/scanfeed/blob/v'));
      const inside = links.filter((link) => !outside.includes(link));
      expect(inside).toEqual(expect.arrayContaining(['../', './']));
      for (const link of inside)
        expect((await get(new URL(link, 'http://x/runbooks/').pathname)).status, link).toBe(200);
      for (const link of outside) {
        const path = new URL(link).pathname.split('/').slice(5).join('/');
        expect((await stat(path)).isFile(), link).toBe(true);
      }
    }
    for (const path of [
      'ScanfeedDow.md',
      '../README.md',
      '..%2FREADME.md',
      'README.md/',
      'README',
      '%00.md',
      '.md',
      'README.html',
    ]) {
      expect(await get(`/runbooks/${path}`)).toMatchObject({ status: 404 });
    }
    expect(await get('/runbooks/README.md', 'POST')).toMatchObject({ status: 405 });
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('leads to the list of runbooks when the slash is missing, also below the path of a proxy', async () => {
    const { get } = await start();
    const { status, headers } = await get('/runbooks');
    const { pathname } = new URL(headers.location ?? '', 'http://proxy/scanfeed/runbooks');
    expect([status, pathname]).toEqual([308, '/scanfeed/runbooks/']);
    expect((await get('/runbooks', 'POST')).status).toBe(405);
  });

  test('serves the status page with a policy that blocks scripts and external content', async () => {
    const currentErrors = [
      {
        stage: 'feed',
        kind: 'http_500',
        message: '<script>alert(1)</script>',
        since: '2025-12-31T23:00:00.000Z',
        failures: 3,
        held: false,
        runbook: 'ScanfeedErrorRatioHigh',
        nextTryAt: '2026-01-01T00:00:00.000Z',
      },
    ];
    const { get } = await start({ feeds: () => [shownFeed({ ...REPORT, currentErrors })] });
    const { status, headers, body } = await get('/');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; /,
    );
    expect(body).toContain('<html lang="en">');
    expect(body).toContain('<title>Failing, retrying – scanfeed invoices</title>');
    expect(body).toContain('<dt>Lag</dt><dd>1.5 s</dd>');
    expect(body).toContain('for 1 h, since');
    expect(body).toContain('3 failures in a row, next attempt now');
    expect(body).toContain('<a href="runbooks/ScanfeedErrorRatioHigh.md">');
    expect(body).not.toMatch(/<script>|src=|https?:/);
    expect(body).toContain('&#60;script&#62;');
    for (const path of ['runbooks/', 'metrics', 'status.json', 'livez', 'readyz']) {
      expect(body).toContain(`href="${path}"`);
      expect((await get(`/${path}`)).status).not.toBe(404);
    }
  });

  test.each(['/metrics', '/livez', '/status.json', '/'])(
    'answers HEAD %s like GET but without a body',
    async (path) => {
      const { metrics } = testMetrics();
      const rendered = metrics.exposition();
      const { get } = await start({ metrics: { ...metrics, exposition: () => rendered } });
      const [whole, head] = [await get(path), await get(path, 'HEAD')];
      expect(head.body).toBe('');
      expect(head.status).toBe(200);
      expect(head.headers['content-length']).toBe(whole.headers['content-length']);
      expect(head.headers['content-type']).toBe(whole.headers['content-type']);
    },
  );

  test('rejects other methods with 405 and other paths with 404', async () => {
    const { get } = await start();
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await get('/metrics', method);
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    }
    for (const path of ['/metric', '/metrics/', '/constructor', '/__proto__', '/..%2fmetrics']) {
      expect((await get(path)).status).toBe(404);
    }
  });

  test('answers 500 without the reason and logs it when a route fails', async () => {
    const report = () => {
      throw new Error('the-reason');
    };
    const { get, log } = await start({ feeds: () => [{ ...shownFeed(REPORT), report }] });
    const { status, body } = await get('/status.json');
    expect(status).toBe(500);
    expect(body).not.toContain('the-reason');
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', fields: { path: '/status.json' } });
  });

  test('closes silent connections when it is closed', async () => {
    const { server, get } = await start();
    const socket = connect({ host: '127.0.0.1', port: server.address()?.port ?? 0 });
    await get('/livez'); // the silent connection was accepted before
    const ended = once(socket, 'close');
    await server.close();
    await ended;
    expect(server.address()).toBeNull();
    await server.close();
  });

  test('does not wait for answers that are not ready when it is closed', async () => {
    const asked = gate();
    const exposition = () => {
      asked.open();
      return new Promise<never>(() => {});
    };
    const { server } = await start({ metrics: { ...testMetrics().metrics, exposition } });
    const socket = connect({ host: '127.0.0.1', port: server.address()?.port ?? 0 });
    const ended = once(socket, 'close');
    socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n');
    await asked.opened;
    await server.close();
    await ended;
    expect(server.address()).toBeNull();
  });
});

describe('a port in use', () => {
  test('is logged once, retried every five seconds, and used once it is free', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const log = recordingLogger();
    const [waiting, freed] = [gate(), gate()];
    const pauses: number[] = [];
    const clock = {
      ...systemClock,
      monotonic: () => 0,
      sleep: async (ms: number) => {
        pauses.push(ms);
        if (pauses.length < 3) return;
        waiting.open();
        await freed.opened;
        if (pauses.length > 3) await new Promise<never>(() => {}); // the maximum age of a connection
      },
    };
    const starting = start({ port, logger: log.logger, clock });
    await waiting.opened;
    expect(pauses).toEqual([5_000, 5_000, 5_000]);
    expect(log.lines.filter(({ level }) => level !== 'debug')).toMatchObject([
      { level: 'error', fields: { port, error: { code: 'EADDRINUSE' } } },
    ]);
    await new Promise((resolve) => other.close(resolve));
    freed.open();
    const { server, get } = await starting;
    expect(server.address()?.port).toBe(port);
    expect((await get('/livez')).status).toBe(200);
  });

  test.each(['the signal aborts', 'it is closed'])('is retried until %s', async (end) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const stop = new AbortController();
    const waiting = gate();
    const sleep = (_ms: number, signal: AbortSignal) => {
      waiting.open();
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    };
    const starting = start({
      port: (other.address() as AddressInfo).port,
      clock: { ...systemClock, monotonic: () => 0, sleep },
      signal: stop.signal,
    });
    await waiting.opened;
    if (end === 'it is closed') for (const server of running) await server.close();
    else stop.abort();
    expect((await starting).server.address()).toBeNull();
    await new Promise((resolve) => other.close(resolve));
  });
});
