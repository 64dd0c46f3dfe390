import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../service/start.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { timeToFirstRequest } from '../support/first-request.js';
import { startServer } from '../support/postgres.js';
import { migratedDatabase } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { median } from '../support/statistics.js';

/** Default of SCANFEED_POLL_INTERVAL. */
const POLL_INTERVAL_MS = 5_000;

export const restart: Figure = {
  name: 'restart',
  title: 'Restart after a crash',
  method:
    'A single daemon with the default settings follows a feed that gains ten runs a second. It is killed with SIGKILL and started again at once on the same host, before its lease of 10 s expires. Time runs from the start of the new process until its first request arrives. The kills are spread evenly over a poll interval.',
  measure: async ({ scope, quick, note }) => {
    const service = await startService(scope, { history: 1_000, newRunsPerSecond: 10 });
    const server = await startServer(scope);
    const migrated = await migratedDatabase(server);
    const rounds = quick ? 2 : 15;
    const restarts: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const database = await migrated.clone();
      await inScope(async (inner) => {
        const daemon = startDaemon(inner, service, database);
        await daemon.reachesEnd();
        await sleep(((round + 0.5) / rounds) * POLL_INTERVAL_MS);
        await daemon.kill();
      });
      const restarted = await timeToFirstRequest(service, database);
      note(`${restarted} ms`);
      restarts.push(restarted);
      await database.drop();
    }
    const slowest = Math.max(...restarts);
    return {
      postgresVersion: server.version,
      table: {
        head: ['restarts', 'median', 'slowest'],
        rows: [[`${rounds}`, `${whole(median(restarts))} ms`, `${whole(slowest)} ms`]],
      },
      wanted: [atMost('slowest time from start to first request', slowest, 2_000, 'ms')],
    };
  },
};
