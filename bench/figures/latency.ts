import { runContest } from '../contestants/run-contest.js';
import { type BenchService, startService } from '../service/start.js';
import { atLeast, type Figure, whole } from '../support/figure.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

const LATENCY_MS = 100;

export const latency: Figure = {
  name: 'latency',
  title: 'A slow service',
  method: `Every response takes ${LATENCY_MS} ms. The other contestant is a chain of requests that stores nothing. No feed can be read faster, because each request needs the cursor of the previous response. Time runs from the first request. The time of scanfeed ends with the commit of the last page.`,
  measure: async ({ scope, quick, note }) => {
    const service = await startService(scope, { history: quick ? 2_000 : 20_000, latencyMs: LATENCY_MS });
    const server = await startServer(scope);
    const migrated = await migratedDatabase(server);
    const rounds: { chain: number; scanfeed: number }[] = [];
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      const chain = await runContest('bare-chain', service, null);
      const database = await migrated.clone();
      await server.checkpoint();
      const scanfeed = await syncFromFirstRequest(service, database);
      await database.drop();
      rounds.push({ chain: chain.runs / chain.seconds, scanfeed: scanfeed.runs / scanfeed.seconds });
      note(`round ${round + 1}: ${whole(rounds.at(-1)?.scanfeed ?? 0)} runs/s`);
    }
    const ratio = median(rounds.map(({ chain, scanfeed }) => scanfeed / chain));
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s'],
        rows: [
          ['a chain of requests that stores nothing', whole(median(rounds.map(({ chain }) => chain)))],
          ['scanfeed', whole(median(rounds.map(({ scanfeed }) => scanfeed)))],
        ],
      },
      wanted: [atLeast('rate relative to the chain', ratio, 0.98)],
    };
  },
};

/** The start of the process is no part of what latency does. */
async function syncFromFirstRequest(service: BenchService, database: BenchDatabase) {
  await service.log();
  const { runs, endedAt } = await syncToTheEnd(service, database);
  const { firstAt } = await service.log();
  return { runs, seconds: (endedAt - firstAt) / 1000 };
}
