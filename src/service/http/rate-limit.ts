import PQueue, { PriorityQueue } from 'p-queue';
import type { FeedService } from '../../sync/ports/index.js';

/** Higher goes first: results of old runs must not delay the pages of new ones. */
const PRIORITY = { page: 1, run: 0 } as const;
/** Every fourth request may be one for a run although pages wait: with many feeds, pages always wait. */
const RUN_EVERY = 4;

/** Requests in the order of their priorities, with a share for those of runs. */
class SharedQueue extends PriorityQueue {
  #sent = 0;

  override dequeue() {
    this.#sent += 1;
    const [run] = this.#sent % RUN_EVERY === 0 ? this.filter({ priority: PRIORITY.run }) : [];
    if (run === undefined) return super.dequeue();
    this.remove(run);
    return run;
  }
}

/**
 * Returns a function that limits the rate of a service. The requests to all services that it is applied to are spaced evenly, at
 * most `perSecond` in any second. Null: no limit.
 */
export function createRateLimit(perSecond: number | null): (service: FeedService) => FeedService {
  if (perSecond === null) return (service) => service;
  const queue = new PQueue({ interval: 1000 / perSecond, intervalCap: 1, queueClass: SharedQueue });
  const waitForSlot = (kind: keyof typeof PRIORITY, signal: AbortSignal) =>
    queue.add(async () => {}, { signal, priority: PRIORITY[kind] });
  return (service) => ({
    readPage: async (request, signal, whileQueued = (turn) => turn) => {
      await whileQueued(waitForSlot('page', signal));
      return service.readPage(request, signal);
    },
    readRun: async (scanId, options, signal) => {
      await waitForSlot('run', signal);
      return service.readRun(scanId, options, signal);
    },
  });
}
