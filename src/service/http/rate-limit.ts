import { type Clock, systemClock } from '../../core/clock.js';
import { createPace } from '../../core/pace.js';
import type { FeedService } from '../../sync/ports/index.js';

/** Higher goes first: results of old runs must not delay the pages of new ones. */
const PRIORITY = { page: 1, run: 0 } as const;
/** Every fourth request can be one for a run although pages wait: with many feeds, pages always wait. */
const RUN_EVERY = 4;

/**
 * Returns a function that limits the rate of a service. The requests to all services that it is applied to are spaced evenly, at
 * most `perSecond` in any second. Null: no limit.
 */
export function createRateLimit(
  perSecond: number | null,
  clock: Clock = systemClock,
): (service: FeedService) => FeedService {
  if (perSecond === null) return (service) => service;
  let sent = 0;
  const preferred = () => {
    sent += 1;
    return sent % RUN_EVERY === 0 ? PRIORITY.run : PRIORITY.page;
  };
  const waitForSlot = createPace(1000 / perSecond, clock, preferred);
  return (service) => ({
    readPage: async (request, signal, whileQueued = (turn) => turn) => {
      await whileQueued(waitForSlot({ signal, priority: PRIORITY.page }));
      return service.readPage(request, signal);
    },
    readRun: async (scanId, options, signal) => {
      await waitForSlot({ signal, priority: PRIORITY.run });
      return service.readRun(scanId, options, signal);
    },
  });
}
