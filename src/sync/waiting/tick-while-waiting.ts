import { WAIT_OVER } from '../../core/clock.js';
import type { FeedContext } from '../context.js';
import type { MemoryBudget, MemoryTicket } from '../memory/memory-budget.js';
import type { FeedService } from '../ports/index.js';

/** Interval of the ticks, milliseconds. */
const TICK_MS = 10_000;

type Waiting = Pick<FeedContext, 'budget' | 'service' | 'observer' | 'clock' | 'stepMs'>;

/**
 * Returns the context of a loop that ticks while it waits for memory or for its turn to request a page. Both waits end when others
 * make progress, and may take long. While an earlier page of the loop is in memory, the next one may wait for that one. It does
 * not tick then, so that a hung loop is noticed.
 */
export function tickWhileWaiting<Context extends Waiting>(context: Context): Context {
  const { budget, service, observer, clock, stepMs } = context;
  const open = new Set<MemoryTicket>();

  const tick = () => {
    if (open.size <= 1) observer.ticked(stepMs);
  };
  const whileTicking = async <T>(waiting: Promise<T>): Promise<T> => {
    const over = new AbortController();
    const tickUntilOver = async () => {
      for (;;) {
        await clock.sleep(TICK_MS, over.signal);
        if (over.signal.aborted) return;
        tick();
      }
    };
    void tickUntilOver();
    try {
      const result = await waiting;
      tick();
      return result;
    } finally {
      over.abort(WAIT_OVER);
    }
  };

  const enqueue: MemoryBudget['enqueue'] = (priority) => {
    const ticket = budget.enqueue(priority);
    open.add(ticket);
    return {
      ...ticket,
      reserve: async (...request) => ticket.tryReserve(...request) ?? (await whileTicking(ticket.reserve(...request))),
      close: () => {
        open.delete(ticket);
        ticket.close();
      },
    };
  };
  const readPage: FeedService['readPage'] = (request, signal) => service.readPage(request, signal, whileTicking);
  return {
    ...context,
    budget: { bytes: budget.bytes, enqueue },
    service: { readPage, readRun: (...request) => service.readRun(...request) },
  };
}
