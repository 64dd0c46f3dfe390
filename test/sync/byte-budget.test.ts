import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createByteBudget } from '../../src/sync/byte-budget.js';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

/** Two pages of the feed, the second of which has to wait for the first. */
async function waitingPage() {
  const budget = createByteBudget(64 * MIB);
  const first = budget.open('feed');
  const holding = await first.hold(60 * MIB, 'page', never);
  const stop = new AbortController();
  const events: string[] = [];
  void budget
    .open('feed')
    .hold(10 * MIB, 'page', stop.signal)
    .then(
      () => events.push('begun'),
      () => events.push('gave up'),
    );
  await turn();
  expect(events).toEqual([]);
  return { budget, first, holding, stop, events };
}

describe('a page for which there is no room', () => {
  it('begins when what comes before it is given back', async () => {
    const { first, events } = await waitingPage();
    first.close();
    await turn();
    expect(events).toEqual(['begun']);
  });

  it('begins when what comes before it turns out to be smaller than expected', async () => {
    const { budget, holding, events } = await waitingPage();
    holding.finished(MIB);
    await turn();
    expect(events).toEqual(['begun']);
    expect(budget.held).toBe(11 * MIB);
  });

  it('gives up when it is told to stop, and holds nothing', async () => {
    const { budget, first, stop, events } = await waitingPage();
    stop.abort();
    await turn();
    first.close();
    await turn();
    expect(events).toEqual(['gave up']);
    expect(budget.held).toBe(0);
  });
});

describe('a result that a page left for want of memory', () => {
  it('makes a larger page of the feed give way when there is no room for both', async () => {
    const budget = createByteBudget(64 * MIB);
    const page = await budget.open('feed').hold(40 * MIB, 'page', never);
    const deferred = budget.open('deferred').tryHold(40 * MIB, 'result', never);
    expect(deferred).not.toBeNull();
    expect(page.needs).toBe(40 * MIB);
  });

  it('makes a download give way before its request was sent', async () => {
    const budget = createByteBudget(64 * MIB);
    const waiting = await budget.open('pending').hold(20 * MIB, 'result', never);
    await budget.open('deferred').hold(60 * MIB, 'result', never);
    expect(waiting.needs).toBe(20 * MIB);
    expect(waiting.signal.aborted).toBe(true);
  });
});
