import { startService } from '../service/start.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { startServer } from '../support/postgres.js';
import { mediansByPart, ratesByPart } from '../support/rates-by-part.js';
import { syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

const PARTS = 10;
const REPETITIONS = 5;
const MIB = 1024 * 1024;

export const backlog: Figure = {
  name: 'backlog',
  title: 'A backlog of a million runs',
  method:
    'One daemon with the default settings reads a million runs of 1.7 KB into an empty database, five times. Memory is the highest resident memory of the five readings, as the kernel reports it. The rate of each tenth of the history follows from the times at which its rows were written, and is the median of the five readings. The last tenth is compared with the first tenth of the same reading; the ratio is the median.',
  measure: async ({ scope, quick, note }) => {
    const service = await startService(scope, { history: quick ? 20_000 : 1_000_000 });
    note('the history is recorded');
    const server = await startServer(scope);
    const readings: { peakBytes: number; rates: number[] }[] = [];
    for (let repetition = 0; repetition < (quick ? 1 : REPETITIONS); repetition++) {
      const database = await server.createDatabase();
      await server.checkpoint();
      const { peakBytes } = await syncToTheEnd(service, database);
      const rates = await ratesByPart(database, PARTS);
      readings.push({ peakBytes, rates });
      note(`${rates.map(whole).join(' ')} runs/s, ${whole(peakBytes / MIB)} MiB`);
      await database.drop();
    }
    const tenths = mediansByPart(readings.map(({ rates }) => rates));
    const lastToFirst = median(readings.map(({ rates }) => (rates.at(-1) ?? Number.NaN) / (rates[0] ?? Number.NaN)));
    return {
      postgresVersion: server.version,
      table: {
        head: ['tenth', ...tenths.map((_, part) => `${part + 1}`)],
        rows: [['runs/s', ...tenths.map(whole)]],
      },
      wanted: [
        atMost('highest resident memory', Math.max(...readings.map(({ peakBytes }) => peakBytes)) / MIB, 160, 'MiB'),
        {
          what: 'rate of the last tenth relative to the first: 0.9 to 1.1',
          measured: lastToFirst.toFixed(2),
          met: lastToFirst >= 0.9 && lastToFirst <= 1.1,
        },
      ],
    };
  },
};
