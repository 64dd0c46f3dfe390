import PQueue from 'p-queue';
import type { FeedService } from '../sync/ports.js';

/** Spaces the requests of a service evenly, so that no second has more than `perSecond` of them. */
export function limitRate(service: FeedService, perSecond: number | null): FeedService {
  if (perSecond === null) return service;
  const queue = new PQueue({ interval: 1000 / perSecond, intervalCap: 1 });
  return {
    readPage: async (request, signal) => {
      await queue.add(async () => {}, { signal });
      return service.readPage(request, signal);
    },
    readRun: async (scanId, options, signal) => {
      await queue.add(async () => {}, { signal });
      return service.readRun(scanId, options, signal);
    },
  };
}
