import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { limitConcurrency } from '../../../src/sync/waiting/limit-concurrency.js';
import { isCollected } from '../../support/collect-garbage.js';

/** Work that ends when the test ends it. */
function work() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { run: () => ended, end };
}

it('runs the allowed number of tasks, the highest priority first', async () => {
  const limited = limitConcurrency(2);
  const started: string[] = [];
  const first = work();
  const start = (name: string, priority = 0, run = async () => {}) =>
    limited(
      () => {
        started.push(name);
        return run();
      },
      { priority },
    );
  const all = [start('a', 0, first.run), start('b', 0, work().run), start('c'), start('d', 1)];
  await turn();
  expect(started).toEqual(['a', 'b']);
  first.end();
  await Promise.all([all[0], all[2], all[3]]);
  expect(started).toEqual(['a', 'b', 'd', 'c']);
});

it('does not start work when its signal aborts before', async () => {
  const limited = limitConcurrency(1);
  void limited(work().run);
  const stop = new AbortController();
  const waiting = limited(() => Promise.reject(new Error('started')), { signal: stop.signal });
  stop.abort(new Error('stop'));
  await expect(waiting).rejects.toThrow('stop');
});

it('continues after work that fails', async () => {
  const limited = limitConcurrency(1);
  await expect(limited(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await limited(async () => 'done')).toBe('done');
});

it('releases a result while other work is waiting', async () => {
  const limited = limitConcurrency(1);
  const [first, last] = [work(), work()];
  const makeResult = async () => {
    void limited(first.run);
    const result = limited(async () => ({ large: true }));
    void limited(last.run);
    void limited(last.run);
    first.end();
    return new WeakRef(await result);
  };
  const result = await makeResult();
  expect(await isCollected(result)).toBe(true);
  last.end();
});
