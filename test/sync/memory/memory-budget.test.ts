import { setMaxListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  createMemoryBudget,
  type MemoryBudget,
  type Priority,
  type Reservation,
} from '../../../src/sync/memory/memory-budget.js';
import { choicesFrom } from '../../simulation/random-choices.js';
import { cases } from '../../support/thorough.js';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
setMaxListeners(0, never); // all downloads listen, as with a signal of the engine

/** A promise, and whether it has been fulfilled. */
function watch<T>(promise: Promise<T>): { readonly done: boolean; readonly promise: Promise<T> } {
  const watched = { done: false, promise };
  promise.then(
    () => {
      watched.done = true;
    },
    () => {},
  );
  return watched;
}

const reserve = (budget: MemoryBudget, bytes: number, priority: Priority = 'feed') =>
  budget.enqueue(priority).reserve(bytes, never);

describe('a page that waits for memory', () => {
  /** Two pages of the feed, the second of which has to wait for the first. */
  async function waitingPage() {
    const budget = createMemoryBudget(64 * MIB);
    const first = budget.enqueue('feed');
    const reservation = await first.reserve(60 * MIB, never);
    const stop = new AbortController();
    const second = watch(budget.enqueue('feed').reserve(10 * MIB, stop.signal));
    await turn();
    expect(second.done).toBe(false);
    return { budget, first, reservation, stop, second };
  }

  it('starts when the earlier reservation is released', async () => {
    const { first, second } = await waitingPage();
    first.close();
    await second.promise;
  });

  it('starts when the earlier download is smaller than expected', async () => {
    const { budget, reservation, second } = await waitingPage();
    await reservation.resize(MIB);
    await second.promise;
    expect(budget.reservedBytes).toBe(11 * MIB);
  });

  it('does not wait for an older download in the background that waits too', async () => {
    const budget = createMemoryBudget(64 * MIB);
    await reserve(budget, 40 * MIB);
    await reserve(budget, 2 * MIB, 'background');
    const pending = watch(reserve(budget, 30 * MIB, 'background'));
    await reserve(budget, 10 * MIB);
    expect([pending.done, budget.reservedBytes]).toEqual([false, 52 * MIB]);
  });

  it('gives up when its signal aborts, and reserves nothing', async () => {
    const { budget, first, stop, second } = await waitingPage();
    stop.abort(new Error('stopped'));
    await expect(second.promise).rejects.toThrow('stopped');
    first.close();
    expect(budget.reservedBytes).toBe(0);
  });
});

describe('a download that grows', () => {
  it('waits until an earlier one is released, and keeps what it has', async () => {
    const budget = createMemoryBudget(64 * MIB);
    const first = await reserve(budget, 40 * MIB);
    const second = await reserve(budget, 20 * MIB);
    const grown = watch(second.resize(30 * MIB));
    await turn();
    expect([grown.done, budget.reservedBytes]).toEqual([false, 60 * MIB]);
    first.release();
    await grown.promise;
    expect(budget.reservedBytes).toBe(30 * MIB);
  });

  it('gives up when it is released', async () => {
    const budget = createMemoryBudget(64 * MIB);
    await reserve(budget, 40 * MIB);
    const second = await reserve(budget, 20 * MIB);
    const growing = second.resize(30 * MIB);
    second.release();
    await expect(growing).rejects.toThrow('released');
    await second.resize(50 * MIB);
    expect(budget.reservedBytes).toBe(40 * MIB);
  });

  it('exceeds the budget if it is the first of those that all wait for each other, one at a time', async () => {
    const budget = createMemoryBudget(60 * MIB);
    const downloads = await Promise.all([1, 2, 3].map(() => reserve(budget, 20 * MIB)));
    const grown = downloads.map((download) => watch(download.resize(50 * MIB)));
    for (const [index, download] of downloads.entries()) {
      await turn();
      expect(grown.map(({ done }) => done)).toEqual([true, index > 0, index > 1]);
      download.release();
    }
  });

  it('waits while one of another priority exceeds the budget', async () => {
    const budget = createMemoryBudget(60 * MIB);
    const page = await reserve(budget, 50 * MIB);
    const pending = await reserve(budget, 10 * MIB, 'background');
    await page.resize(80 * MIB);
    const grown = watch(pending.resize(20 * MIB));
    await turn();
    expect(grown.done).toBe(false);
    page.release();
    await grown.promise;
  });
});

describe('the results of a page', () => {
  it('never wait: one that cannot grow is refused', async () => {
    const budget = createMemoryBudget(64 * MIB);
    const ticket = budget.enqueue('feed');
    await ticket.reserve(50 * MIB, never);
    const result = ticket.tryReserve(MIB);
    await expect(result?.resize(20 * MIB)).rejects.toThrow('memory');
    expect([result?.isRefused, ticket.tryReserve(20 * MIB)]).toEqual([true, null]);
  });

  it('are limited together, and rank before later pages that wait', async () => {
    const budget = createMemoryBudget(64 * MIB);
    const ticket = budget.enqueue('feed');
    await ticket.reserve(30 * MIB, never);
    void reserve(budget, 60 * MIB).catch(() => {});
    const first = ticket.tryReserve(10 * MIB, 16 * MIB);
    expect(first).not.toBeNull();
    expect(ticket.tryReserve(10 * MIB, 16 * MIB)).toBeNull();
    await first?.resize(4 * MIB);
    expect(ticket.tryReserve(10 * MIB, 16 * MIB)).not.toBeNull();
  });

  it('get nothing once their ticket is closed', () => {
    const ticket = createMemoryBudget(64 * MIB).enqueue('feed');
    ticket.close();
    expect(ticket.tryReserve(1)).toBeNull();
  });
});

describe('downloads of random sizes that grow, complete and are committed', () => {
  const MOST = 40 * MIB;

  /** Downloads one, then commits it after a while, in the order of its feed, as the engine does. */
  async function download(
    budget: MemoryBudget,
    priority: Priority,
    sizes: readonly number[],
    committedBefore: Promise<unknown>,
    onReceived: () => void,
  ) {
    const ticket = budget.enqueue(priority);
    const reservation = await ticket.reserve(sizes[0] ?? 0, never);
    for (const size of sizes) {
      await turn();
      await reservation.resize(size);
    }
    onReceived();
    await turn();
    ticket.tryReserve(10 * MIB, 16 * MIB);
    await committedBefore;
    await turn();
    ticket.close();
  }

  it.each(Array.from({ length: cases(20, 300) }, (_, n) => n + 1))(
    'all come to their end, and at most one exceeds the budget (seed %i)',
    async (seed) => {
      const { between, chance, pick } = choicesFrom(seed);
      const budget = createMemoryBudget(64 * MIB);
      let most = 0;
      const follow = async (priority: Priority) => {
        let committed: Promise<unknown> = Promise.resolve();
        for (let page = 0; page < 6; page += 1) {
          const last = chance(0.3) ? between(0, MOST) : pick([2_000, 300_000, 14 * MIB]);
          const sizes = [pick([1_000, 800 * 1024, last]), last / 4, last / 2, last];
          await new Promise<void>((received) => {
            committed = download(budget, priority, sizes, committed, received);
          });
          most = Math.max(most, budget.reservedBytes);
        }
        await committed;
      };
      await Promise.all(Array.from({ length: 12 }, (_, n) => follow(n % 3 === 0 ? 'background' : 'feed')));
      expect(budget.reservedBytes).toBe(0);
      expect(most).toBeLessThanOrEqual(64 * MIB + MOST);
    },
  );
});

describe('the small pages of many feeds', () => {
  const PAGE = Math.round(0.9 * MIB);

  /** Lets each of a hundred feeds ask for ten pages. */
  function hundredFeeds() {
    const budget = createMemoryBudget(64 * MIB);
    const pages = Array.from({ length: 1_000 }, () => {
      const ticket = budget.enqueue('feed');
      return { ticket, reserved: watch<Reservation>(ticket.reserve(PAGE, never)) };
    });
    return { budget, pages };
  }

  it('wait for each other when they use up the budget, and are granted in order as earlier ones are committed', async () => {
    const { budget, pages } = hundredFeeds();
    await turn();
    expect(pages.filter(({ reserved }) => reserved.done)).toHaveLength(71);
    for (const [index, { ticket, reserved }] of pages.entries()) {
      await turn();
      expect(reserved.done, `page ${index}`).toBe(true);
      expect(budget.reservedBytes).toBeLessThanOrEqual(64 * MIB);
      ticket.close();
    }
    expect(budget.reservedBytes).toBe(0);
  });

  it('do not delay a poll at the end of another feed when they use up the budget', async () => {
    const { budget } = hundredFeeds();
    expect(await reserve(budget, 2_000)).toMatchObject({ bytes: 2_000 });
  });

  it('keep what they have when a poll turns out to be a page, which waits for its turn', async () => {
    const { budget, pages } = hundredFeeds();
    const poll = await reserve(budget, 2_000);
    const grown = watch(poll.resize(PAGE));
    for (const { ticket } of pages.slice(0, -71)) ticket.close();
    await turn();
    expect(grown.done).toBe(false);
    pages.at(-71)?.ticket.close();
    await grown.promise;
  });
});
