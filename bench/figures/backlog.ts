import { startService } from '../service/start.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { startServer } from '../support/postgres.js';
import { ratesByPart } from '../support/rates-by-part.js';
import { syncToTheEnd } from '../support/scanfeed-sync.js';

const PARTS = 10;
const MIB = 1024 * 1024;

export const backlog: Figure = {
  name: 'backlog',
  title: 'A backlog of a million runs',
  method:
    'One daemon with the default settings reads a million runs of 1.7 KB. Its resident memory at its most, by the kernel’s account; the rate of each tenth, by when the rows were written.',
  measure: async ({ scope, quick, note }) => {
    const service = await startService(scope, { history: quick ? 20_000 : 1_000_000 });
    note('the history is recorded');
    const server = await startServer(scope);
    const database = await server.createDatabase();
    const { peakBytes } = await syncToTheEnd(service, database);
    const rates = await ratesByPart(database, PARTS);
    const [first = Number.NaN, last = Number.NaN] = [rates[0], rates.at(-1)];
    return {
      postgresVersion: server.version,
      table: {
        head: ['tenth', ...rates.map((_, part) => `${part + 1}`)],
        rows: [['runs/s', ...rates.map(whole)]],
      },
      wanted: [
        atMost('resident memory', peakBytes / MIB, 160, 'MiB'),
        {
          what: 'the last tenth as fast as the first, within 10 %',
          measured: (last / first).toFixed(2),
          met: last / first >= 0.9 && last / first <= 1.1,
        },
      ],
    };
  },
};
