import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { runMaintenance } from '../../../src/daemon/maintenance/run-maintenance.js';
import type { Outage } from '../../../src/observability/log/failure-log.js';
import type { Logger } from '../../../src/observability/log/logger.js';
import { readSettings } from '../../../src/settings/settings.js';
import { limitConcurrency } from '../../../src/sync/waiting/limit-concurrency.js';
import { hastyClock } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useChangeListener } from '../../support/notifications.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import {
  emptyReports,
  fieldColumns,
  fields,
  makeUnsearchable,
  NO_READER,
  named,
  refresh,
} from '../../support/reports.js';
import { MIGRATED, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const listener = useChangeListener(given);
let feed: TestFeed;

beforeEach(async () => {
  await emptyReports(setup);
  feed = await setup.takeFeed();
});

/** Runs the maintenance until `stop`; reports each log line, each pause and each purge. */
function maintain(
  over: Record<string, string>,
  on: {
    line?: (level: string, message: string, fields: unknown) => void;
    pause?: (n: number, ms: number) => unknown;
    purged?: (table: string, count: number) => void;
  },
  {
    isLeader = (): boolean => true,
    onOutage = (_: Outage): void => {},
    isReadingInBulk = (): boolean => false,
    monotonic = hastyClock.monotonic,
  } = {},
) {
  const stop = new AbortController();
  let pauses = 0;
  const log = (level: string) => (message: string, fields: unknown) => on.line?.(level, message, fields);
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
  const logger = { debug: () => {}, info: log('info'), warn: log('warn') } as unknown as Logger;
  const done = runMaintenance(
    {
      settings,
      limit: limitConcurrency(1),
      checkIntervalMs: () => 5_000,
      connection: setup.connection,
      isLeader,
      isReadingInBulk,
      onPurged: on.purged ?? (() => {}),
      logger,
      clock,
      onOutage,
    },
    stop.signal,
  );
  return { stop: () => stop.abort(), done };
}

const viewExists = async (name: string) =>
  (await setup.rows(sql`SELECT FROM pg_class WHERE relname = ${name} AND relkind = 'v'`)).length === 1;

const documentsLeft = async () => {
  const [row] = await setup.rows(sql<{ left: number }>`
    SELECT count(*)::int AS left FROM scanfeed.runs, scanfeed.report_progress AS progress
    WHERE runs.change_seq > progress.change_seq`);
  return row?.left ?? Number.NaN;
};

describe('the maintenance of the daemon', () => {
  it('sends one notification a check when commits have changed runs', async () => {
    const commits = [2, 0, 3, 0];
    const checks: unknown[] = [];
    const maintenance = maintain(
      { SCANFEED_TYPED_VIEWS: 'off' },
      {
        pause: async (n, ms) => {
          checks.push([ms, await listener.sent()]);
          if (n > commits.length) maintenance.stop();
          for (let left = commits[n - 1] ?? 0; left > 0; left -= 1)
            await feed.commit([entryJson({ scanId: `${n}-${left}` })]);
        },
      },
    );
    await maintenance.done;
    expect(checks).toEqual([[], [''], [], [''], []].map((sent) => [5_000, sent]));
  });

  it('adds a view when a document type is new, and a column when a field is new', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    const lines: string[] = [];
    const maintenance = maintain(
      {},
      {
        line: (level, message) => {
          lines.push(`${level} ${message}`);
          if (lines.length === 1) void feed.commit([entryJson({ scanId: 'b', data: { neu: 1 } })]);
          else maintenance.stop();
        },
      },
    );
    await maintenance.done;
    expect(lines).toEqual(Array(2).fill('info built typed views'));
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['betrag numeric', 'neu numeric']);
  });

  it('warns when the columns of a view have reached their limit', async () => {
    await feed.commit([1, 2, 3, 4, 5].map((n) => entryJson({ scanId: `wide-${n}`, data: fields(named(501)) })));
    const warned = await new Promise((resolve) => {
      const maintenance = maintain(
        {},
        {
          line: (level, message, more) => {
            if (level === 'warn') maintenance.stop();
            if (level === 'warn') resolve([message, (more as { full?: unknown }).full]);
          },
        },
      );
    });
    expect(warned).toEqual(['typed views are full', ['document_rechnung']]);
  });

  it.each([
    ['a batch per check when a history is being read', true, 60, [250, 250, 126]],
    ['several batches per check when they fit into a tenth of a second', true, 30, [500, 126]],
    ['everything in one check when no history is being read', false, 60, [626]],
  ])('searches %s', async (_, isReadingInBulk, batchMs, parts) => {
    await feed.commit(Array.from({ length: 626 }, (_, n) => entryJson({ scanId: `run-${n}`, data: { betrag: 1 } })));
    const searched: number[] = [];
    let now = 0;
    let left = 626;
    const maintenance = maintain(
      {},
      {
        pause: async (n, ms) => {
          now += ms + batchMs;
          if (ms !== 5_000) return;
          const before = left;
          left = await documentsLeft();
          if (n > 1) searched.push(before - left);
          if (left === 0) maintenance.stop();
        },
      },
      { isReadingInBulk: () => isReadingInBulk, monotonic: () => now },
    );
    await maintenance.done;
    expect(searched).toEqual(parts);
  });

  it('builds no views when they are turned off or another replica leads', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    const off = maintain({ SCANFEED_TYPED_VIEWS: 'off' }, { pause: (n) => n === 5 && off.stop() });
    await off.done;
    const maintenance = maintain({}, { pause: (n) => n === 5 && maintenance.stop() }, { isLeader: () => false });
    await maintenance.done;
    expect(await viewExists('document_rechnung')).toBe(false);
  });

  it('logs a failure once, and builds the views when it is over', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    await setup.rows(sql`ALTER SCHEMA scanfeed_reporting RENAME TO elsewhere`);
    const lines: string[] = [];
    let now = 0;
    const maintenance = maintain(
      {},
      {
        line: (level, message) => {
          lines.push(`${level} ${message}`);
          if (message === 'recovered') maintenance.stop();
        },
        pause: (n, ms) => {
          now += ms;
          if (n === 4) void setup.rows(sql`ALTER SCHEMA elsewhere RENAME TO scanfeed_reporting`);
        },
      },
      { monotonic: () => now },
    );
    await maintenance.done;
    expect(lines).toEqual(['warn holding: action required', 'info built typed views', 'info recovered']);
    expect(await viewExists('document_rechnung')).toBe(true);
  });

  it('tries a view in growing pauses when its table takes no row, and stores the rows of the others', async () => {
    await setup.rows(sql`CREATE SEQUENCE tries; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM nextval('tries'); RAISE EXCEPTION 'too long' USING ERRCODE = '54000'; END $$`);
    const page = (n: number) => feed.commit([entryJson({ scanId: `${n}`, data: { a: n, zeilen: [{ b: n }] } })]);
    await page(1);
    await refresh(setup);
    await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE history_of IS NULL`);
    await refresh(setup);
    const [first] = await setup.rows(sql<{ id: number }>`
      SELECT id FROM ${tables.reportViews} WHERE name = 'document_rechnung'`);
    await setup.rows(sql`CREATE TRIGGER refuse BEFORE INSERT ON ${sql.id('scanfeed_reporting', `stored_${first?.id}`)}
      FOR EACH ROW EXECUTE FUNCTION refuse()`);
    await page(2);
    let now = 0;
    const ended: boolean[] = [];
    const maintenance = maintain(
      {},
      {
        pause: async (_, ms) => {
          now += ms;
          if (now === 100_000) await page(3);
          if (now >= 600_000) maintenance.stop();
        },
      },
      { monotonic: () => now, onOutage: ({ endedAt }) => ended.push(endedAt !== null) },
    );
    await maintenance.done;
    const [{ tries, behind } = {}] = await setup.rows(sql<Record<string, unknown>>`
      SELECT last_value::int AS tries, array_agg(name) FILTER (WHERE stored_up_to < highest) AS behind
      FROM tries, ${tables.reportViews}, (SELECT max(change_seq) AS highest FROM ${tables.runs}) AS runs
      WHERE stores_rows GROUP BY 1`);
    expect({ behind, ended: ended.includes(true) }).toEqual({ behind: ['document_rechnung'], ended: false });
    expect(tries).toBeGreaterThan(4);
    expect(tries).toBeLessThan(10);
  });

  it('names the document when PostgreSQL cannot search it', async () => {
    await makeUnsearchable(setup, '2026-13-13');
    await feed.commit([
      entryJson({ scanId: 'a', data: { datum: '2026-12-12' } }),
      entryJson({ scanId: 'b', data: { datum: '2026-13-13' } }),
    ]);
    const warnings: unknown[] = [];
    const maintenance = maintain(
      {},
      {
        line: (level, message, fields) => level === 'warn' && warnings.push([message, fields]),
        pause: (n) => n === 5 && maintenance.stop(),
      },
    );
    await maintenance.done;
    const skipped = { scanId: 'b', remedy: expect.any(String), error: expect.objectContaining({ sqlstate: '22007' }) };
    expect(warnings).toEqual([['skipped a document for views', skipped]]);
  });

  it('drops its failures when another replica leads', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: 1 } })]);
    await setup.rows(sql`ALTER SCHEMA scanfeed_reporting RENAME TO elsewhere`);
    const ended: boolean[] = [];
    const lines: string[] = [];
    const maintenance = maintain(
      {},
      { line: (level, message) => lines.push(`${level} ${message}`), pause: (n) => n === 5 && maintenance.stop() },
      { isLeader: () => lines.length === 0, onOutage: ({ endedAt }) => ended.push(endedAt !== null) },
    );
    await maintenance.done;
    await setup.rows(sql`ALTER SCHEMA elsewhere RENAME TO scanfeed_reporting`);
    expect(lines).toEqual(['warn holding: action required']);
    expect(ended).toEqual([false, true]);
  });

  it('deletes rows in batches and counts them when they have expired', async () => {
    const entries = Array.from({ length: 700 }, (_, n) =>
      entryJson({ scanId: `old-${n}`, completedAt: '2020-01-01T00:00:00Z', deliveredAt: '2020-01-01T00:00:00Z' }),
    );
    await feed.commit([...entries, entryJson({ scanId: 'new', deliveredAt: new Date().toISOString() })]);
    const counts: [string, number][] = [];
    const maintenance = maintain(
      { SCANFEED_RETENTION_DAYS: '365', SCANFEED_TYPED_VIEWS: 'off' },
      {
        purged: (table, count) => counts.push([table, count]),
        line: (_, message) => message === 'deleted expired rows' && maintenance.stop(),
      },
    );
    await maintenance.done;
    expect(counts).toEqual([
      ['runs', 500],
      ['runs', 200],
      ['run_history', 0],
      ['quarantine', 0],
    ]);
    expect(await setup.rows(sql`SELECT scan_id FROM scanfeed_reporting.runs`)).toEqual([{ scan_id: 'new' }]);
  });

  it('logs orphaned pending results when there are new ones', async () => {
    const former = await setup.takeFeed({ name: 'former' });
    const leavePending = async (scanId: string) => {
      await commitPending(former, { scanId });
      await setup.rows(sql`UPDATE ${tables.feeds} SET last_commit_at = '-infinity', created_at = '-infinity'
        WHERE name = 'former'`);
      await setup.rows(sql`DELETE FROM ${tables.processes}`);
    };
    await leavePending('one');
    const lines: unknown[] = [];
    let now = 0;
    const maintenance = maintain(
      { SCANFEED_TYPED_VIEWS: 'off' },
      {
        line: (level, _, fields) => lines.push([level, fields]),
        pause: async (n) => {
          now += 3_600_000; // each check is due
          if (n === 4) await leavePending('another');
          if (n === 6) maintenance.stop();
        },
      },
      { monotonic: () => now },
    );
    await maintenance.done;
    const of = {
      orphanedFeed: 'former',
      openEntries: 0,
      remedy: expect.stringContaining('`scanfeed forget former --to OTHER`'),
    };
    expect(lines).toEqual([
      ['warn', { ...of, pendingResults: 1 }],
      ['warn', { ...of, pendingResults: 2 }],
    ]);
  });
});
