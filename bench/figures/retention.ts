import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startService } from '../service/start.js';
import { PROGRAM, startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { multiplyRuns } from '../support/multiply-runs.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { percentile } from '../support/statistics.js';

const SAMPLE = 2_000;
const POLL_MS = 1_000;
const CHECK_INTERVAL_MS = 100;
const ERASE_EVERY_MS = 5_000;
/** PostgreSQL's defaults: deleting so much causes checkpoints. */
const CHECKPOINTS = { max_wal_size: '1GB', checkpoint_timeout: '5min' };

export const retention: Figure = {
  name: 'retention',
  title: 'Ten million runs expire',
  method:
    'A table contains ten million runs that are all older than the retention. The feed gains ten runs per second and is polled every second. The lag of the feed is read ten times per second until the daemon has deleted all old runs. Every five seconds `scanfeed erase` deletes one of the new runs.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const rows = quick ? 20_000 : 10_000_000;
    const server = await startServer(scope, CHECKPOINTS);
    const database = await migratedDatabase(server);
    await inScope(async (inner) => {
      await syncToTheEnd(await startService(inner, { history: SAMPLE, seed: 1_000 }), database);
    });
    await multiplyRuns(database, rows, note);
    await database.query('TRUNCATE scanfeed.feeds, scanfeed.cursor_history');
    await server.checkpoint();
    const service = await startService(scope, { history: 200, newRunsPerSecond: 10 });
    const daemon = startDaemon(scope, service, database, {
      SCANFEED_POLL_INTERVAL: `${POLL_MS}ms`,
      SCANFEED_RETENTION_DAYS: 'runs=1',
    });
    await daemon.reachesEnd();
    const startedAt = performance.now();
    const { lags, erasures } = await watchLag(database, rows, note);
    const minutes = (performance.now() - startedAt) / 60_000;
    const at = (share: number) => percentile(lags, share);
    const beyond = (ms: number) => `${Math.round(ms)} ms`;
    return {
      postgresVersion: server.version,
      table: {
        head: ['runs deleted', 'minutes', 'erasures meanwhile', 'lag: median', '99 %', 'highest'],
        rows: [[whole(rows), minutes.toFixed(1), whole(erasures), beyond(at(0.5)), beyond(at(0.99)), beyond(at(1))]],
      },
      wanted: [atMost('highest lag minus the poll interval', at(1) - POLL_MS, 1_000, 'ms')],
    };
  },
};

/** Reads the lag, and erases runs, until this many runs have expired. Returns the lags in milliseconds. */
async function watchLag(database: BenchDatabase, rows: number, note: (text: string) => void) {
  const lags: number[] = [];
  const watching = { done: false };
  const erasing = eraseNewRuns(database, watching);
  try {
    for (let look = 0; !watching.done; look++) {
      const [row] = await database.query<{ ms: number }>(
        'SELECT lag_seconds * 1000 AS ms FROM scanfeed_reporting.sync_status',
      );
      lags.push(row?.ms ?? Number.NaN);
      if (look % 100 === 0) watching.done = (await countExpired(database, note)) >= rows;
      await sleep(CHECK_INTERVAL_MS);
    }
  } finally {
    watching.done = true;
  }
  return { lags, erasures: await erasing };
}

async function countExpired(database: BenchDatabase, note: (text: string) => void): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM scanfeed.deleted_runs WHERE reason = 'expired'",
  );
  note(`${whole(row?.count ?? 0)} runs expired`);
  return row?.count ?? 0;
}

/** Erases the newest run, again and again. Resolves with the number of erasures. */
async function eraseNewRuns(database: BenchDatabase, watching: { readonly done: boolean }): Promise<number> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, DATABASE_URL: database.url };
  for (let erasures = 0; ; erasures++) {
    await sleep(ERASE_EVERY_MS);
    if (watching.done) return erasures;
    const [newest] = await database.query<{ id: string }>(
      'SELECT scan_id AS id FROM scanfeed.runs ORDER BY change_seq DESC LIMIT 1',
    );
    if (newest === undefined) continue;
    await promisify(execFile)(process.execPath, [PROGRAM, 'erase', '--yes', '--scan-id', newest.id], { env });
  }
}
