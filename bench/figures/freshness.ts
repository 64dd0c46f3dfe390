import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../service/start.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { startServer } from '../support/postgres.js';
import { percentile } from '../support/statistics.js';

const POLL_MS = 200;

export const freshness: Figure = {
  name: 'freshness',
  title: 'From the feed to the table',
  method: `The feed gains ten runs per second and is polled every ${POLL_MS} ms. Time runs from the moment at which the feed lists a run until its row is committed, by PostgreSQL’s commit timestamps.`,
  measure: async ({ scope, quick }) => {
    const service = await startService(scope, { history: 200, newRunsPerSecond: 10 });
    const server = await startServer(scope, { track_commit_timestamp: 'on' });
    const database = await server.createDatabase();
    const daemon = startDaemon(scope, service, database, { SCANFEED_POLL_INTERVAL: `${POLL_MS}ms` });
    const from = (await daemon.reachesEnd()) + 1_000;
    await sleep(quick ? 5_000 : 60_000);
    const rows = await database.query<{ ms: number }>(
      `SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - delivered_at)::double precision * 1000 AS ms
       FROM scanfeed.runs WHERE delivered_at > to_timestamp($1)`,
      [from / 1000],
    );
    const delays = rows.map(({ ms }) => ms);
    const at = (share: number) => percentile(delays, share);
    return {
      postgresVersion: server.version,
      table: {
        head: ['runs', 'median', '99 %', 'slowest'],
        rows: [[whole(delays.length), ...[0.5, 0.99, 1].map((share) => `${Math.round(at(share))} ms`)]],
      },
      wanted: [atMost('99th percentile minus the poll interval', at(0.99) - POLL_MS, 50, 'ms')],
    };
  },
};
