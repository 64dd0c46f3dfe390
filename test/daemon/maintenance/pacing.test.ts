import { expect, it } from 'vitest';
import { runInTurns } from '../../../src/daemon/maintenance/pacing.js';
import { limitConcurrency } from '../../../src/sync/waiting/limit-concurrency.js';

const { signal } = new AbortController();

/** A task of three parts, which records each. */
const taskOf = (name: string, done: string[]) =>
  async function* () {
    for (const part of [1, 2]) {
      done.push(`${name}${part}`);
      yield;
    }
    done.push(`${name}3`);
  };

it('gives the tasks of other schemas their turns when a task has several parts', async () => {
  const done: string[] = [];
  const limit = limitConcurrency(1);
  const run = (name: string) => runInTurns(taskOf(name, done), limit, () => true, signal);
  expect(await Promise.all(['a', 'b'].map(run))).toEqual([true, true]);
  expect(done).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
});

it('gives a task up when the process no longer leads a feed of the schema', async () => {
  const done: string[] = [];
  const run = runInTurns(taskOf('a', done), limitConcurrency(1), () => done.length < 2, signal);
  expect(await run).toBe(false);
  expect(done).toEqual(['a1', 'a2']);
});

it('stops waiting for a turn when the signal aborts', async () => {
  const limit = limitConcurrency(1);
  void limit(() => new Promise(() => {}));
  const stop = new AbortController();
  const done: string[] = [];
  const run = runInTurns(taskOf('a', done), limit, () => true, stop.signal);
  stop.abort();
  await expect(run).rejects.toThrow();
  expect(done).toEqual([]);
});
