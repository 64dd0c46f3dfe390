import type { FeedContext } from '../context.js';
import type { FeedService } from '../ports/index.js';
import { whileRunning } from '../waiting/while-running.js';
import type { MemoryBudget, MemoryTicket } from './memory-budget.js';

/**
 * Returns the context of a loop that ticks while it waits for memory or for its turn to request a page. Both waits end when others
 * make progress, and may take long. While an earlier page of the loop is in memory, the next one may wait for that one. It does
 * not tick then, so that a hung loop is noticed.
 */
export function tickWhileWaiting<Context extends FeedContext>(context: Context): Context {
  const { budget, service, observer, clock } = context;
  const { stepMs } = context.settings;
  const open = new Set<MemoryTicket>();

  const tick = () => {
    if (open.size <= 1) observer.ticked(stepMs);
  };
  const whileTicking = async <T>(waiting: Promise<T>): Promise<T> => {
    const result = await whileRunning(waiting, tick, clock);
    tick();
    return result;
  };

  const enqueue: MemoryBudget['enqueue'] = (priority) => {
    const ticket = budget.enqueue(priority, whileTicking);
    open.add(ticket);
    return {
      ...ticket,
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
