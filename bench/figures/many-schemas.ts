import { type Figure, whole } from '../support/figure.js';
import { followFeeds } from '../support/followed-feeds.js';
import { startServer } from '../support/postgres.js';
import { privateBytesOfTree } from '../support/process-figures.js';
import { measureTakeover } from '../support/takeover.js';
import { describe, FULL, measureFeeds, medianAnd99, QUICK, seconds } from './many-feeds.js';

const MIB = 1024 * 1024;

export const manySchemas: Figure = {
  name: 'many-schemas',
  title: 'Many feeds with a schema each',
  method:
    'The options and the settings are the same as above, but each feed has a schema of its own. The daemon creates its tables, views and functions. One round.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const sizes = quick ? QUICK : FULL;
    const server = await startServer(scope, { track_commit_timestamp: 'on' });
    const followed = await followFeeds(scope, server, sizes.many, { hasSchemaEach: true });
    const measured = await measureFeeds(followed, server, sizes);
    const serverBytes = privateBytesOfTree(server.pid);
    note(`measured ${sizes.many} schemas: ${describe(measured)}, PostgreSQL ${Math.round(serverBytes / MIB)} MiB`);
    const takeoverMs = await measureTakeover(followed);
    const mebibytes = (bytes: number) => `${Math.round(bytes / MIB)} MiB`;
    return {
      postgresVersion: server.version,
      table: {
        head: ['', `${whole(sizes.many)} feeds, ${whole(sizes.many)} schemas`],
        rows: [
          ['start until every history is stored', seconds(measured.historyMs)],
          ['peak memory until then', mebibytes(measured.peak)],
          ['at rest: statements per second', measured.statements.toFixed(0)],
          ['at rest: processor time of scanfeed', `${measured.own.toFixed(1)} %`],
          ['at rest: processor time of PostgreSQL', `${measured.postgres.toFixed(1)} %`],
          ['at rest: memory', mebibytes(measured.resident)],
          ['memory of PostgreSQL without shared buffers', mebibytes(serverBytes)],
          ['lag of a new run: median, 99 %', medianAnd99(measured.lags)],
          ['takeover after a crash', seconds(takeoverMs)],
        ],
      },
      wanted: [],
    };
  },
};
