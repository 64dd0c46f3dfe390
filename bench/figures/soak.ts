import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../service/start.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { startServer } from '../support/postgres.js';
import { cpuMs, memoryOf } from '../support/process-figures.js';
import { median } from '../support/statistics.js';

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;
const PARTS = 6;

/** What a minute was seen to end with. */
interface Minute {
  /** Resident memory, bytes. */
  readonly resident: number;
  /** Of one core, 0 to 1, while it lasted. */
  readonly core: number;
}

export const soak: Figure = {
  name: 'soak',
  title: 'An hour of work',
  method:
    'A daemon has read a history of 20,000 runs, and polls once per second a feed that gains 50 runs per second. Resident memory is read at the end of each minute, and processor time is measured over each minute, as a share of one core. The first ten minutes are a warm-up.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const minuteMs = quick ? MINUTE_MS / 60 : MINUTE_MS;
    const service = await startService(scope, { history: 20_000, newRunsPerSecond: 50 });
    const server = await startServer(scope);
    const database = await server.createDatabase();
    const daemon = startDaemon(scope, service, database, { SCANFEED_POLL_INTERVAL: '1s' });
    await daemon.reachesEnd();
    const parts: Minute[][] = [];
    for (let part = 0; part < PARTS; part++) {
      const minutes: Minute[] = [];
      for (let minute = 0; minute < 60 / PARTS; minute++) {
        const [before, startedAt] = [cpuMs(daemon.pid), performance.now()];
        await sleep(minuteMs);
        const core = (cpuMs(daemon.pid) - before) / (performance.now() - startedAt);
        minutes.push({ resident: memoryOf(daemon.pid).resident, core });
      }
      parts.push(minutes);
      note(`minute ${(part + 1) * minutes.length}: ${whole(middleOf(minutes) / MIB)} MiB`);
    }
    const [row] = await database.query<{ runs: number }>('SELECT count(*)::int AS runs FROM scanfeed.runs');
    const [early = [], late = []] = [parts[0], parts.at(-1)];
    const mib = (bytes: number) => `${whole(bytes / MIB)} MiB`;
    return {
      postgresVersion: server.version,
      table: {
        head: ['minutes', ...parts.map((_, part) => `${part * 10 + 1} to ${(part + 1) * 10}`)],
        rows: [
          ['memory, median', ...parts.map((minutes) => mib(middleOf(minutes)))],
          ['memory, highest', ...parts.map((minutes) => mib(mostOf(minutes)))],
          [
            'processor time, median',
            ...parts.map((minutes) => `${(100 * median(minutes.map(({ core }) => core))).toFixed(1)} %`),
          ],
        ],
      },
      notes: [`${whole(row?.runs ?? 0)} runs were stored. Peak memory was ${mib(memoryOf(daemon.pid).peak)}.`],
      wanted: [
        atMost(
          'growth of the highest memory from the first ten minutes to the last',
          (mostOf(late) - mostOf(early)) / MIB,
          8,
          'MiB',
          1,
        ),
      ],
    };
  },
};

function middleOf(minutes: readonly Minute[]): number {
  return median(minutes.map(({ resident }) => resident));
}

function mostOf(minutes: readonly Minute[]): number {
  return Math.max(...minutes.map(({ resident }) => resident));
}
