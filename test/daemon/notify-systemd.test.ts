import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { notifySystemd } from '../../src/daemon/notify-systemd.js';
import { createReadiness } from '../../src/observability/admin/readiness.js';
import { readSystemd } from '../../src/settings/systemd.js';
import { recordingLogger } from '../support/observed.js';

/** A clock whose pauses a test ends one by one. */
function steppedClock() {
  const pauses: { ms: number; end: () => void }[] = [];
  let onPause = () => {};
  const sleep = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve());
      pauses.push({ ms, end: resolve });
      onPause();
    });
  /** Resolves with the next pause. */
  const next = async () => {
    if (pauses.length === 0) await new Promise<void>((resolve) => (onPause = resolve));
    return pauses.shift() as { ms: number; end: () => void };
  };
  return { ...systemClock, sleep, next };
}

function setUp(watchdogMs: number | null, send = async (_: string): Promise<unknown> => undefined) {
  const stop = new AbortController();
  const readiness = createReadiness();
  const clock = steppedClock();
  const { logger, lines } = recordingLogger();
  const sent: string[] = [];
  const loop = { alive: true };
  const ended = notifySystemd(
    watchdogMs,
    { readiness, clock, logger, liveness: { check: () => ({ feed: 'invoices', alive: loop.alive, silentMs: 0 }) } },
    (assignment) => {
      sent.push(assignment);
      return send(assignment);
    },
    stop.signal,
  );
  return { stop, readiness, clock, lines, sent, loop, ended };
}

describe('notifySystemd', () => {
  test('says that it is ready once the schema is verified, and that it stops', async () => {
    const { stop, readiness, clock, sent, ended } = setUp(null);
    await Promise.resolve();
    expect(sent).toEqual([]);
    readiness.ready();
    await clock.next();
    expect(sent).toEqual(['READY=1']);
    stop.abort();
    await ended;
    expect(sent).toEqual(['READY=1', 'STOPPING=1']);
  });

  test('reports twice per watchdog period that the loop is alive, and not while it hangs', async () => {
    const { stop, readiness, clock, sent, loop, ended } = setUp(60_000);
    readiness.ready();
    const first = await clock.next();
    expect(first.ms).toBe(30_000);
    expect(sent).toEqual(['READY=1', 'WATCHDOG=1']);
    loop.alive = false;
    first.end();
    const second = await clock.next();
    expect(sent).toEqual(['READY=1', 'WATCHDOG=1']);
    loop.alive = true;
    second.end();
    await clock.next();
    expect(sent).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1']);
    stop.abort();
    await ended;
  });

  test('is not ready if it is stopped before', async () => {
    const { stop, sent, ended } = setUp(60_000);
    stop.abort();
    await ended;
    expect(sent).toEqual(['STOPPING=1']);
  });

  test('logs once that notifications cannot be sent, and continues', async () => {
    const { stop, readiness, clock, sent, lines, ended } = setUp(60_000, () => Promise.reject(new Error('refused')));
    readiness.ready();
    (await clock.next()).end();
    await clock.next();
    stop.abort();
    await ended;
    expect(sent).toEqual(['READY=1', 'WATCHDOG=1', 'READY=1', 'WATCHDOG=1', 'STOPPING=1']);
    expect(lines).toMatchObject([{ level: 'warn', message: 'systemd could not be notified' }]);
  });

  test.each(['READY=1', 'WATCHDOG=1'])('sends %s again soon when it could not be sent', async (lost) => {
    let isLost = true;
    const { stop, readiness, clock, sent, ended } = setUp(60_000, async (assignment) => {
      if (assignment === lost && isLost) throw new Error('refused');
    });
    readiness.ready();
    const retry = await clock.next();
    expect(retry.ms).toBe(5_000);
    isLost = false;
    retry.end();
    expect((await clock.next()).ms).toBe(30_000);
    expect(sent.filter((assignment) => assignment === lost)).toHaveLength(2);
    stop.abort();
    await ended;
  });
});

describe('readSystemd', () => {
  test.each([
    ['nothing outside systemd', {}, { notifySocket: null, watchdogMs: null }],
    [
      'socket and watchdog',
      { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' },
      { notifySocket: '/run/systemd/notify', watchdogMs: 30_000 },
    ],
    ['no watchdog of another process', { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }, { watchdogMs: null }],
    ['no watchdog from something else', { WATCHDOG_USEC: '30s' }, { watchdogMs: null }],
  ])('reads %s', (_, env, expected) => {
    expect(readSystemd(env, 7)).toMatchObject(expected);
  });
});
