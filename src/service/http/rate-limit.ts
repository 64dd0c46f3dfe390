import PQueue from 'p-queue';
import type { FeedService } from '../../sync/ports/index.js';

/** Pages go before the results of others: what is loaded for old runs must not keep new ones waiting. */
const PRIORITY = { page: 1, run: 0 } as const;

/** Spaces the requests of a service evenly, so that no second has more than `perSecond` of them. */
export function limitRate(service: FeedService, perSecond: number | null): FeedService {
  if (perSecond === null) return service;
  const queue = new PQueue({ interval: 1000 / perSecond, intervalCap: 1 });
  const turn = (what: keyof typeof PRIORITY, signal: AbortSignal) =>
    queue.add(async () => {}, { signal, priority: PRIORITY[what] });
  return {
    readPage: async (request, signal) => {
      await turn('page', signal);
      return service.readPage(request, signal);
    },
    readRun: async (scanId, options, signal) => {
      await turn('run', signal);
      return service.readRun(scanId, options, signal);
    },
  };
}
