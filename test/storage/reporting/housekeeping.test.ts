import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { keepHouse } from '../../../src/daemon/housekeeping.js';
import type { Outage } from '../../../src/observability/log/failure-log.js';
import type { Logger } from '../../../src/observability/log/logger.js';
import { readSettings } from '../../../src/settings/settings.js';
import { hastyClock } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, fieldColumns, NO_READER } from '../../support/reports.js';
import { MIGRATED, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
let feed: TestFeed;

beforeEach(async () => {
  await emptyReports(bench);
  feed = await bench.takeFeed();
});

/** Keeps house until `stop`, told of each line of the log and of each pause. */
function keep(
  over: Record<string, string>,
  on: {
    line?: (level: string, message: string, fields: unknown) => void;
    pause?: (n: number, ms: number) => unknown;
    purged?: (table: string, count: number) => void;
  },
  {
    isLeader = (): boolean => true,
    onOutage = (_: Outage): void => {},
    isReading = (): boolean => false,
    monotonic = hastyClock.monotonic,
  } = {},
) {
  const stop = new AbortController();
  let pauses = 0;
  const say = (level: string) => (message: string, fields: unknown) => on.line?.(level, message, fields);
  const { database: settings } = readSettings(
    { DATABASE_URL: given.url, SCANFEED_READER_ROLE: NO_READER, ...over },
    { need: ['database'] },
  );
  const clock = {
    ...hastyClock,
    monotonic,
    sleep: async (ms: number) => {
      pauses += 1;
      await on.pause?.(pauses, ms);
      await new Promise(setImmediate);
    },
  };
  const logger = { debug: () => {}, info: say('info'), warn: say('warn') } as unknown as Logger;
  const metrics = { isLeader, isReading, purged: on.purged ?? (() => {}) };
  const done = keepHouse({ settings, connection: bench.connection, metrics, logger, clock, onOutage }, stop.signal);
  return { stop: () => stop.abort(), done };
}

const viewExists = async (name: string) =>
  (await bench.rows(sql`SELECT FROM pg_class WHERE relname = ${name} AND relkind = 'v'`)).length === 1;

const documentsLeft = async () => {
  const [row] = await bench.rows(sql<{ left: number }>`
    SELECT count(*)::int AS left FROM scanfeed.runs, scanfeed.report_progress AS progress
    WHERE runs.change_seq > progress.change_seq`);
  return row?.left ?? Number.NaN;
};

describe('the daemon', () => {
  it('gives a new document type a view and a new field a column, by itself', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    const lines: string[] = [];
    const house = keep(
      {},
      {
        line: (level, message) => {
          lines.push(`${level} ${message}`);
          if (lines.length === 1) void feed.commit([entryJson({ scanId: 'b', data: { neu: 1 } })]);
          else house.stop();
        },
      },
    );
    await house.done;
    expect(lines).toEqual(Array(2).fill('info built typed views for reports'));
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual(['betrag numeric', 'neu numeric']);
  });

  it.each([
    ['a little at each look while a history is read, to the end', true, 60, [250, 250, 126]],
    ['more at each look where a tenth of a second has room for it', true, 30, [500, 126]],
    ['everything at one look otherwise', false, 60, [626]],
  ])('looks through %s', async (_, isReading, batchMs, parts) => {
    await feed.commit(Array.from({ length: 626 }, (_, n) => entryJson({ scanId: `run-${n}`, data: { betrag: 1 } })));
    const looked: number[] = [];
    let now = 0;
    let left = 626;
    const house = keep(
      {},
      {
        pause: async (n, ms) => {
          now += ms + batchMs;
          if (ms !== 5_000) return;
          const before = left;
          left = await documentsLeft();
          if (n > 1) looked.push(before - left);
          if (left === 0) house.stop();
        },
      },
      { isReading: () => isReading, monotonic: () => now },
    );
    await house.done;
    expect(looked).toEqual(parts);
  });

  it('leaves views alone where that is wanted, and where it does not lead', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    const off = keep({ SCANFEED_TYPED_VIEWS: 'off' }, { pause: (n) => n === 5 && off.stop() });
    await off.done;
    const house = keep({}, { pause: (n) => n === 5 && house.stop() }, { isLeader: () => false });
    await house.done;
    expect(await viewExists('document_rechnung')).toBe(false);
  });

  it('says once what fails, goes on, and catches up when it can', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    await bench.rows(sql`ALTER SCHEMA scanfeed_reporting RENAME TO elsewhere`);
    const lines: string[] = [];
    const house = keep(
      {},
      {
        line: (level, message) => {
          lines.push(`${level} ${message}`);
          if (message === 'works again') house.stop();
        },
        pause: (n) => {
          if (n === 4) void bench.rows(sql`ALTER SCHEMA elsewhere RENAME TO scanfeed_reporting`);
        },
      },
    );
    await house.done;
    expect(lines).toEqual([
      'warn holding: this will not pass by itself',
      'info built typed views for reports',
      'info works again',
    ]);
    expect(await viewExists('document_rechnung')).toBe(true);
  });

  it('leaves what fails to the next leader once it leads no more', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    await bench.rows(sql`ALTER SCHEMA scanfeed_reporting RENAME TO elsewhere`);
    const ends: boolean[] = [];
    const lines: string[] = [];
    const house = keep(
      {},
      { line: (level, message) => lines.push(`${level} ${message}`), pause: (n) => n === 5 && house.stop() },
      { isLeader: () => lines.length === 0, onOutage: ({ endedAt }) => ends.push(endedAt !== null) },
    );
    await house.done;
    await bench.rows(sql`ALTER SCHEMA elsewhere RENAME TO scanfeed_reporting`);
    expect(lines).toEqual(['warn holding: this will not pass by itself']);
    expect(ends).toEqual([false, true]);
  });

  it('removes what is past the retention, in batches, and counts it', async () => {
    const entries = Array.from({ length: 700 }, (_, n) =>
      entryJson({ scanId: `old-${n}`, completedAt: '2020-01-01T00:00:00Z', deliveredAt: '2020-01-01T00:00:00Z' }),
    );
    await feed.commit([...entries, entryJson({ scanId: 'new', deliveredAt: new Date().toISOString() })]);
    const counts: [string, number][] = [];
    const house = keep(
      { SCANFEED_RETENTION_DAYS: '365', SCANFEED_TYPED_VIEWS: 'off' },
      {
        purged: (table, count) => counts.push([table, count]),
        line: (_, message) => message === 'removed what is past the retention' && house.stop(),
      },
    );
    await house.done;
    expect(counts).toEqual([
      ['runs', 500],
      ['runs', 200],
      ['run_history', 0],
      ['quarantine', 0],
    ]);
    expect(await bench.rows(sql`SELECT scan_id FROM scanfeed_reporting.runs`)).toEqual([{ scan_id: 'new' }]);
  });

  it('tells once of each retired feed whose pending results nobody can load any more', async () => {
    const former = await bench.takeFeed({ name: 'former', baseUrl: 'https://elsewhere.test/v1' });
    const leavePending = async (scanId: string) => {
      await commitPending(former, { scanId });
      await bench.rows(sql`UPDATE ${tables.feeds} SET lease_expires_at = '-infinity', last_commit_at = '-infinity',
        created_at = '-infinity' WHERE name = 'former'`);
    };
    await leavePending('one');
    const lines: unknown[] = [];
    let now = 0;
    const house = keep(
      { SCANFEED_TYPED_VIEWS: 'off' },
      {
        line: (level, _, fields) => lines.push([level, fields]),
        pause: async (n) => {
          now += 3_600_000; // each look is due
          if (n === 4) await leavePending('another');
          if (n === 6) house.stop();
        },
      },
      { monotonic: () => now },
    );
    await house.done;
    const of = { of: 'former', baseUrl: 'https://elsewhere.test/v1' };
    const remedy = expect.stringMatching(
      /`scanfeed adopt --feed former .*`scanfeed resolve --all --give-up --feed former`/,
    );
    expect(lines).toEqual([
      ['warn', { ...of, results: 1, remedy }],
      ['warn', { ...of, results: 2, remedy }],
    ]);
  });
});
