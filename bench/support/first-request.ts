import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchService } from '../service/start.js';
import { startDaemon } from './daemon.js';
import type { BenchDatabase } from './postgres.js';
import { inScope } from './scope.js';

/** Starts the daemon, stops it after its first request, and returns the time between start and request, in milliseconds. */
export async function timeToFirstRequest(service: BenchService, database: BenchDatabase): Promise<number> {
  // A request of an earlier daemon may still be on its way.
  while ((await service.log()).requests > 0);
  return inScope(async (scope) => {
    const daemon = startDaemon(scope, service, database);
    for (;;) {
      const { requests, firstAt } = await service.log();
      if (requests > 0) return firstAt - daemon.startedAt;
      await sleep(50);
    }
  });
}
