import { startService } from '../service/start.js';
import { atLeast, type Figure, whole } from '../support/figure.js';
import { startServer } from '../support/postgres.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

const TRUNCATED = 0.05;
const LATENCY_MS = 50;
const SETTINGS = { SCANFEED_RESOLVE_CONCURRENCY: '16' };

export const truncated: Figure = {
  name: 'truncated',
  title: 'Truncated results',
  method: `Every response takes ${LATENCY_MS} ms, and ${100 * TRUNCATED} % of the runs are delivered without their result. These results are loaded before their page is committed, ${SETTINGS.SCANFEED_RESOLVE_CONCURRENCY} at once (\`SCANFEED_RESOLVE_CONCURRENCY\`, 8 by default). For comparison, the same history is read with all results in its pages.`,
  measure: async ({ scope, quick, note }) => {
    const history = quick ? 2_000 : 30_000;
    const services = {
      whole: await startService(scope, { history, latencyMs: LATENCY_MS }),
      truncated: await startService(scope, { history, latencyMs: LATENCY_MS, truncatedShare: TRUNCATED }),
    };
    const server = await startServer(scope);
    const migrated = await migratedDatabase(server);
    const rateFrom = async (kind: keyof typeof services) => {
      const database = await migrated.clone();
      await server.checkpoint();
      const { runs, seconds } = await syncToTheEnd(services[kind], database, SETTINGS);
      await database.drop();
      note(`${kind} ${whole(runs / seconds)} runs/s`);
      return runs / seconds;
    };
    const rounds: Record<keyof typeof services, number>[] = [];
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      rounds.push({ whole: await rateFrom('whole'), truncated: await rateFrom('truncated') });
    }
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s'],
        rows: [
          ['all results in their pages', whole(median(rounds.map((round) => round.whole)))],
          [`${100 * TRUNCATED} % truncated`, whole(median(rounds.map((round) => round.truncated)))],
        ],
      },
      wanted: [
        atLeast(
          'rate relative to that without truncated results',
          median(rounds.map((round) => round.truncated / round.whole)),
          0.8,
        ),
      ],
    };
  },
};
