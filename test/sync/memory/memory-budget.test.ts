import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  createMemoryBudget,
  type DownloadKind,
  type MemoryTicket,
  type Reservation,
} from '../../../src/sync/memory/memory-budget.js';
import { choicesFrom } from '../../simulation/random-choices.js';
import { cases } from '../../support/thorough.js';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

/** Two pages of the feed, the second of which has to wait for the first. */
async function waitingPage() {
  const budget = createMemoryBudget(64 * MIB);
  const first = budget.enqueue('feed');
  const reservation = await first.reserve(60 * MIB, 'page', never);
  const stop = new AbortController();
  const events: string[] = [];
  void budget
    .enqueue('feed')
    .reserve(10 * MIB, 'page', stop.signal)
    .then(
      () => events.push('begun'),
      () => events.push('gave up'),
    );
  await turn();
  expect(events).toEqual([]);
  return { budget, first, reservation, stop, events };
}

describe('a page that waits for memory', () => {
  it('starts when the earlier reservation is released', async () => {
    const { first, events } = await waitingPage();
    first.close();
    await turn();
    expect(events).toEqual(['begun']);
  });

  it('starts when the earlier download is smaller than expected', async () => {
    const { budget, reservation, events } = await waitingPage();
    reservation.finish(MIB);
    await turn();
    expect(events).toEqual(['begun']);
    expect(budget.reservedBytes).toBe(11 * MIB);
  });

  it('gives up when its signal aborts, and reserves nothing', async () => {
    const { budget, first, stop, events } = await waitingPage();
    stop.abort();
    await turn();
    first.close();
    await turn();
    expect(events).toEqual(['gave up']);
    expect(budget.reservedBytes).toBe(0);
  });
});

describe('of downloads that reserve, finish and release at random', () => {
  const sizes = [10 * 1024, 400 * 1024, MIB, 4 * MIB, 20 * MIB] as const;
  const priorities = ['deferred', 'feed', 'pending', 'full'] as const;

  it.each(Array.from({ length: cases(20, 300) }, (_, n) => n + 1))(
    'none waits that could be granted (seed %i)',
    async (seed) => {
      const { between, chance, pick } = choicesFrom(seed);
      const budget = createMemoryBudget(32 * MIB);
      const waiting = new Set<{ readonly ticket: MemoryTicket; readonly bytes: number; readonly kind: DownloadKind }>();
      const reserved: Reservation[] = [];
      let waited = 0;
      for (let step = 0; step < 150; step += 1) {
        if (chance(0.6)) {
          const request = {
            ticket: budget.enqueue(pick(priorities)),
            bytes: pick(sizes),
            kind: pick(['page', 'result'] as const),
          };
          waiting.add(request);
          void request.ticket.reserve(request.bytes, request.kind, new AbortController().signal).then((reservation) => {
            waiting.delete(request);
            reserved.push(reservation);
          });
        } else if (reserved.length > 0) {
          const [reservation] = reserved.splice(between(0, reserved.length - 1), 1);
          if (chance(0.5)) reservation?.finish(between(0, reservation.bytes));
          reservation?.release();
        }
        await turn();
        waited += waiting.size;
        for (const { ticket, bytes, kind } of waiting) expect(ticket.tryReserve(bytes, kind, never)).toBeNull();
      }
      expect(waited).toBeGreaterThan(0);
    },
  );
});

describe('a result that was left pending because its page lacked memory', () => {
  it('preempts a larger page of the feed when they do not fit together', async () => {
    const budget = createMemoryBudget(64 * MIB);
    const page = await budget.enqueue('feed').reserve(40 * MIB, 'page', never);
    const deferred = budget.enqueue('deferred').tryReserve(40 * MIB, 'result', never);
    expect(deferred).not.toBeNull();
    expect(page.preemptedFor).toBe(40 * MIB);
  });

  it('preempts a download before its request is sent', async () => {
    const budget = createMemoryBudget(64 * MIB);
    const waiting = await budget.enqueue('pending').reserve(20 * MIB, 'result', never);
    await budget.enqueue('deferred').reserve(60 * MIB, 'result', never);
    expect(waiting.preemptedFor).toBe(20 * MIB);
    expect(waiting.signal.aborted).toBe(true);
  });
});

describe('the small pages of many feeds', () => {
  const PAGE = Math.round(0.9 * MIB);

  /** Lets each of a hundred feeds ask for ten pages. */
  function hundredFeeds() {
    const budget = createMemoryBudget(64 * MIB);
    const feeds = Array.from({ length: 100 }, () =>
      Array.from({ length: 10 }, () => {
        const ticket = budget.enqueue('feed');
        const state = { granted: false };
        void ticket.reserve(PAGE, 'page', new AbortController().signal).then(() => {
          state.granted = true;
        });
        return { ticket, state };
      }),
    );
    return { budget, pages: feeds.flat() };
  }

  it('wait for each other when they use up the budget, and are granted in order as earlier ones are committed', async () => {
    const { budget, pages } = hundredFeeds();
    await turn();
    expect(budget.reservedBytes).toBeLessThanOrEqual(64 * MIB);
    const granted = () => pages.filter(({ state }) => state.granted).length;
    const atOnce = granted();
    expect(atOnce).toBeGreaterThan(60);
    for (const [index, { ticket, state }] of pages.entries()) {
      await turn();
      expect(state.granted, `page ${index}`).toBe(true);
      ticket.close();
      expect(budget.reservedBytes).toBeLessThanOrEqual(64 * MIB);
    }
    expect(budget.reservedBytes).toBe(0);
  });

  it('do not delay a poll at the end of another feed when they use up the budget', async () => {
    const { budget } = hundredFeeds();
    await turn();
    expect(budget.enqueue('feed').tryReserve(2_000, 'page', never)).not.toBeNull();
  });

  it('are cancelled by none of them when a poll turns out to be a page', async () => {
    const { budget, pages } = hundredFeeds();
    await turn();
    const poll = await budget.enqueue('feed').reserve(0, 'page', never);
    poll.grow(PAGE);
    expect(poll.preemptedFor).toBe(PAGE);
    expect(pages[0]?.state.granted).toBe(true);
  });
});
