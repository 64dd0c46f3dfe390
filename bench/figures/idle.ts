import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../service/start.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure, type Wanted } from '../support/figure.js';
import { timeToFirstRequest } from '../support/first-request.js';
import { startServer } from '../support/postgres.js';
import { cpuMs, memoryOf } from '../support/process-figures.js';
import { migratedDatabase } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { median } from '../support/statistics.js';
import { touchAfterRest } from '../support/touch-after-rest.js';

const MIB = 1024 * 1024;
const SETTLES_MS = 10_000;

export const idle: Figure = {
  name: 'idle',
  title: 'At rest, and at the start',
  method:
    'User and system time of a daemon with the default settings at the end of a quiet feed, from ten seconds after it got there. The start lasts from the start of the process until its first request, on a database that has its tables. The last column is the time to touch one page of memory that was idle for five seconds, before and after. Over 0.1 microseconds this machine slows down everything that wakes up.',
  measure: async ({ scope, quick }) => {
    const service = await startService(scope, { history: 1_000 });
    const server = await startServer(scope);
    const database = await migratedDatabase(server);
    const starts: number[] = [];
    const touches = [await touchAfterRest()];
    for (let start = 0; start < (quick ? 2 : 7); start++) starts.push(await timeToFirstRequest(service, database));
    const rest = await inScope(async (inner) => {
      const daemon = startDaemon(inner, service, database);
      await daemon.reachesEnd();
      await sleep(quick ? 2_000 : SETTLES_MS);
      return atRest(daemon.pid, quick ? 10_000 : 120_000);
    });
    touches.push(await touchAfterRest());
    const wanted: Wanted[] = [
      { what: 'of a core: less than 0.5 %', measured: `${rest.percent.toFixed(2)} %`, met: rest.percent < 0.5 },
      atMost('from start to first request', median(starts), 500, 'ms'),
    ];
    return {
      postgresVersion: server.version,
      table: {
        head: ['CPU at rest', 'memory at rest', 'start to first request', 'slowest start', 'a page after rest'],
        rows: [
          [
            `${rest.percent.toFixed(2)} %`,
            `${Math.round(rest.resident / MIB)} MiB`,
            `${Math.round(median(starts))} ms`,
            `${Math.max(...starts)} ms`,
            `${touches.map((us) => us.toFixed(2)).join(' and ')} µs`,
          ],
        ],
      },
      wanted,
    };
  },
};

/** Of one core, over a while. */
async function atRest(pid: number, forMs: number): Promise<{ percent: number; resident: number }> {
  const [before, startedAt] = [cpuMs(pid), performance.now()];
  await sleep(forMs);
  const percent = ((cpuMs(pid) - before) / (performance.now() - startedAt)) * 100;
  return { percent, resident: memoryOf(pid).resident };
}
