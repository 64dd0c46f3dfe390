import { expect, test } from 'vitest';
import { reportSlowStore } from '../../src/observability/log/report-slow-store.js';
import type { FeedStore } from '../../src/sync/ports/index.js';
import { recordingLogger } from '../support/observed.js';
import { VirtualClock } from '../support/virtual-clock.js';

/** A store whose calls take until they are released, and what was logged about them. */
function setUp() {
  const clock = new VirtualClock();
  const { logger, lines } = recordingLogger();
  const waiting: (() => void)[] = [];
  const wait = () => new Promise<void>((resolve) => waiting.push(resolve));
  const slow = { readPosition: wait, readStatus: wait } as unknown as FeedStore;
  const store = reportSlowStore(slow, logger, clock);
  const release = async (count: number) => {
    for (const end of waiting.splice(0, count)) end();
    await clock.advance(0);
  };
  const logged = () => lines.splice(0).map(({ level, message, fields }) => ({ level, message, ...fields }));
  return { clock, store, release, logged };
}

test('logs a call that takes ten seconds, and its end', async () => {
  const { clock, store, release, logged } = setUp();
  void store.readPosition('acme');
  await clock.advance(9_999);
  expect(logged()).toEqual([]);
  await clock.advance(1);
  expect(logged()).toEqual([
    { level: 'warn', message: 'waiting for PostgreSQL', task: 'readPosition', calls: 1, seconds: 10 },
  ]);
  await clock.advance(5_000);
  await release(1);
  expect(logged()).toEqual([{ level: 'info', message: 'PostgreSQL responded', task: 'readPosition', seconds: 15 }]);
});

test('logs nothing when a call returns within ten seconds', async () => {
  const { clock, store, release, logged } = setUp();
  void store.readPosition('acme');
  await clock.advance(9_999);
  await release(1);
  await clock.advance(60_000);
  expect(logged()).toEqual([]);
});

test('logs the calls of a task once when a thousand are slow at the same time', async () => {
  const { clock, store, release, logged } = setUp();
  for (let n = 0; n < 1000; n += 1) {
    void store.readPosition(`feed-${n}`);
    await clock.advance(1);
  }
  await clock.advance(20_000);
  expect(logged()).toEqual([
    { level: 'warn', message: 'waiting for PostgreSQL', task: 'readPosition', calls: 1000, seconds: 10 },
  ]);
  await release(999);
  expect(logged()).toEqual([]);
  await release(1);
  expect(logged()).toEqual([{ level: 'info', message: 'PostgreSQL responded', task: 'readPosition', seconds: 21 }]);
  void store.readPosition('acme');
  await clock.advance(10_000);
  expect(logged()).toMatchObject([{ message: 'waiting for PostgreSQL', calls: 1 }]);
});

test('logs each task of its own when several are slow', async () => {
  const { clock, store, logged } = setUp();
  void store.readPosition('acme');
  void store.readStatus('acme');
  await clock.advance(10_000);
  expect(logged().map((line) => ('task' in line ? line.task : null))).toEqual(['readPosition', 'readStatus']);
});
