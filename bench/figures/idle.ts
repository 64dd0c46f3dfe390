import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchService, startService } from '../service/start.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure } from '../support/figure.js';
import { timeToFirstRequest } from '../support/first-request.js';
import { type BenchDatabase, type BenchServer, startServer } from '../support/postgres.js';
import { cpuMs, memoryOf, treeCpuMs } from '../support/process-figures.js';
import { migratedDatabase } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { median } from '../support/statistics.js';
import { touchAfterRest } from '../support/touch-after-rest.js';

const MIB = 1024 * 1024;
const SETTLES_MS = 10_000;
const BARE_SETTLES_MS = 1_000;

export const idle: Figure = {
  name: 'idle',
  title: 'At rest, and at the start',
  method:
    'A daemon is at the end of a feed without new runs. Processor time is the user and system time of the daemon, and of all processes of its PostgreSQL, as a share of one core. The measurement begins ten seconds after the daemon has reached the end, and lasts a minute. It is made twice: with the default settings, which poll every 5 s, and with polls every second. Resident memory is compared with that of a Node.js process of the same version that does nothing. A start lasts from the start of the process until its first request, on a database that has its tables.',
  measure: async ({ scope, quick }) => {
    const service = await startService(scope, { history: 1_000 });
    const server = await startServer(scope);
    const database = await migratedDatabase(server);
    const starts: number[] = [];
    const touches = [await touchAfterRest()];
    for (let start = 0; start < (quick ? 2 : 7); start++) starts.push(await timeToFirstRequest(service, database));
    const forMs = quick ? 10_000 : 60_000;
    const [slow, fast] = [
      await atRest('5s', forMs, service, server, database),
      await atRest('1s', forMs, service, server, database),
    ];
    touches.push(await touchAfterRest());
    const bare = await bareNode();
    const row = (what: string, ...figures: readonly string[]) => [what, ...figures];
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'every 5 s', 'every second'],
        rows: [
          row('processor time of scanfeed', percent(slow.own), percent(fast.own)),
          row('processor time of PostgreSQL', percent(slow.postgres), percent(fast.postgres)),
          row('memory at rest', mib(slow.resident), mib(fast.resident)),
          row('bare Node.js', mib(bare), ''),
          row(
            'from start to first request: median, slowest',
            `${Math.round(median(starts))} ms`,
            `${Math.max(...starts)} ms`,
          ),
        ],
      },
      wanted: [
        atMost('processor time of scanfeed, polls every 5 s', slow.own, 0.15, '%', 2),
        atMost('processor time of scanfeed, polls every second', fast.own, 0.5, '%', 2),
        atMost('processor time of PostgreSQL, polls every second', fast.postgres, 0.6, '%', 2),
        atMost('memory relative to a bare Node.js', slow.resident / bare, 1.7, 'times', 2),
        atMost('from start to first request', median(starts), 500, 'ms'),
      ],
      notes: [
        `Some machines slow down every process that wakes up. On these, touching a memory page that was idle for five seconds takes more than 0.1 µs. Here it took ${touches.map((us) => `${us.toFixed(2)} µs`).join(' before the measurement and ')} after it.`,
      ],
    };
  },
};

interface Rest {
  /** Percent of one core. */
  readonly own: number;
  readonly postgres: number;
  /** Bytes. */
  readonly resident: number;
}

/** What a daemon and its server take at the end of the feed. */
async function atRest(
  pollInterval: string,
  forMs: number,
  service: BenchService,
  server: BenchServer,
  database: BenchDatabase,
): Promise<Rest> {
  return inScope(async (scope) => {
    const daemon = startDaemon(scope, service, database, { SCANFEED_POLL_INTERVAL: pollInterval });
    await daemon.reachesEnd();
    await sleep(SETTLES_MS);
    const used = () => ({ own: cpuMs(daemon.pid), postgres: treeCpuMs(server.pid), at: performance.now() });
    const before = used();
    await sleep(forMs);
    const after = used();
    const percentOf = (cpu: number) => (cpu / (after.at - before.at)) * 100;
    return {
      own: percentOf(after.own - before.own),
      postgres: percentOf(after.postgres - before.postgres),
      resident: memoryOf(daemon.pid).resident,
    };
  });
}

/** Resident memory of a Node.js that waits for a timer, bytes. */
async function bareNode(): Promise<number> {
  return inScope(async (scope) => {
    const bare = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1e9)'], { stdio: 'ignore', env: {} });
    scope.defer(() => bare.kill('SIGKILL'));
    await sleep(BARE_SETTLES_MS);
    return memoryOf(bare.pid ?? 0).resident;
  });
}

function percent(value: number): string {
  return `${value.toFixed(2)} %`;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}
