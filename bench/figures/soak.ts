import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../service/start.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { startServer } from '../support/postgres.js';
import { cpuMs, memoryOf } from '../support/process-figures.js';

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;

export const soak: Figure = {
  name: 'soak',
  title: 'An hour of work',
  method:
    'A daemon polls a feed that gains 50 runs a second, each second. Resident memory and processor time by the minute; the first ten minutes are for settling.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const minutes = quick ? 2 : 60;
    const settled = quick ? 1 : 10;
    const service = await startService(scope, { history: 20_000, newRunsPerSecond: 50 });
    const server = await startServer(scope);
    const database = await server.createDatabase();
    const daemon = startDaemon(scope, service, database, { SCANFEED_POLL_INTERVAL: '1s' });
    await daemon.reachesEnd();
    const samples: { resident: number; cpuMs: number }[] = [];
    for (let minute = 0; minute < minutes; minute++) {
      const before = cpuMs(daemon.pid);
      await sleep(quick ? MINUTE_MS / 10 : MINUTE_MS);
      samples.push({ resident: memoryOf(daemon.pid).resident, cpuMs: cpuMs(daemon.pid) - before });
      if (minute % 10 === 9) note(`minute ${minute + 1}: ${whole((samples.at(-1)?.resident ?? 0) / MIB)} MiB`);
    }
    const [row] = await database.query<{ runs: number }>('SELECT count(*)::int AS runs FROM scanfeed.runs');
    const early = Math.max(...samples.slice(0, settled).map(({ resident }) => resident)) / MIB;
    const late = Math.max(...samples.slice(-settled).map(({ resident }) => resident)) / MIB;
    const cpu = samples.reduce((sum, sample) => sum + sample.cpuMs, 0) / samples.length / (quick ? 6_000 : MINUTE_MS);
    return {
      postgresVersion: server.version,
      table: {
        head: ['minutes', 'runs stored', 'memory in the first ten', 'in the last ten', 'at its most', 'CPU'],
        rows: [
          [
            `${minutes}`,
            whole(row?.runs ?? 0),
            `${whole(early)} MiB`,
            `${whole(late)} MiB`,
            `${whole(memoryOf(daemon.pid).peak / MIB)} MiB`,
            `${(100 * cpu).toFixed(1)} % of a core`,
          ],
        ],
      },
      wanted: [atMost('growth of the memory over the hour', late - early, 8, 'MiB', 1)],
    };
  },
};
