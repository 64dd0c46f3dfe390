import { type RawBuilder, sql } from 'kysely';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setReportingTimeZone } from '../../../src/storage/reporting/time-zone.js';
import { entryJson } from '../../support/entries.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();

/** Stores a run for each time of completion, like the one that a feed has stored. */
const storeRuns = async (times: RawBuilder<unknown>) => {
  await (await setup.takeFeed()).commit([entryJson()]);
  await setup.rows(sql`
    INSERT INTO ${tables.runs}
    SELECT (jsonb_populate_record(run, jsonb_build_object('scan_id', gen_random_uuid(), 'completed_at', at))).*
    FROM ${tables.runs} AS run, ${times} AS completed (at)`);
  await setup.rows(sql`DELETE FROM ${tables.runs} WHERE scan_id = 'scan-1'`);
};

const countsByDay = () =>
  setup.rows(sql<{ day: string | null; runs: number }>`
    SELECT day::text, sum(completed)::int AS runs FROM scanfeed_reporting.daily_statistics GROUP BY day ORDER BY day`);

const commentOfDay = async () => {
  const rows = await setup.rows(sql<{ description: string }>`
    SELECT description FROM scanfeed_reporting.columns WHERE view_name = 'daily_statistics' AND column_name = 'day'`);
  return rows[0]?.description;
};

const empty = () => setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}`);

describe('daily_statistics of two years', () => {
  beforeAll(async () => {
    await empty();
    await storeRuns(sql`(
      SELECT generate_series(timestamptz '2025-03-01Z', '2025-04-10Z', '30 minutes')
      UNION ALL SELECT generate_series(timestamptz '2025-09-01Z', '2025-11-05Z', '30 minutes')
      UNION ALL SELECT generate_series(timestamptz '2011-12-28Z', '2012-01-02Z', '30 minutes') -- Samoa skips a day
    )`);
  });

  it.each([
    'UTC',
    'Europe/Berlin',
    'America/Havana', // the hour after midnight occurs twice
    'Atlantic/Azores',
    'Asia/Beirut', // the hour after midnight is left out, the one before occurs twice
    'America/Santiago',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'Pacific/Apia',
  ])('counts each run on its day of completion when the time zone is %s', async (zone) => {
    await setReportingTimeZone(setup.connection, zone);
    const expected = await setup.rows(sql`
      SELECT (completed_at AT TIME ZONE ${zone})::date::text AS day, count(*)::int AS runs
      FROM ${tables.runs} GROUP BY 1 ORDER BY 1`);
    expect(await countsByDay()).toEqual(expected);
  });
});

describe('daily_statistics', () => {
  beforeEach(empty);

  it('counts each run once when clocks are set back over midnight', async () => {
    await storeRuns(sql`(SELECT generate_series(timestamptz '2010-11-05T00:05Z', '2010-11-10Z', '10 minutes'))`);
    await setReportingTimeZone(setup.connection, 'America/St_Johns');
    const counts = await countsByDay();
    expect(counts.map(({ day }) => day)).toEqual([4, 5, 6, 7, 8, 9].map((day) => `2010-11-0${day}`));
    expect(counts.reduce((sum, { runs }) => sum + runs, 0)).toBe(5 * 144);
  });

  it('has a day null when the time of completion is missing, and the days of any year', async () => {
    await storeRuns(sql`unnest('{NULL, NULL, 0001-01-01T00:30:00Z, 9999-12-31T23:30:00Z}'::timestamptz[])`);
    await setReportingTimeZone(setup.connection, 'Europe/Berlin');
    expect(await countsByDay()).toEqual([
      { day: '0001-01-01', runs: 1 },
      { day: '10000-01-01', runs: 1 },
      { day: null, runs: 2 },
    ]);
  });

  it('reads only the index of its columns when a few days are asked for', async () => {
    await storeRuns(sql`(SELECT generate_series(timestamptz '2025-01-01Z', '2025-12-31Z', '1 hour'))`);
    await sql`VACUUM ANALYZE ${tables.runs}`.execute(setup.database.sql);
    const plan = await setup.rows(sql<{ 'QUERY PLAN': string }>`
      EXPLAIN (COSTS OFF) SELECT * FROM scanfeed_reporting.daily_statistics WHERE day > '2025-12-20'`);
    const scans = plan.flatMap((row) => /\S.* on runs\b/.exec(row['QUERY PLAN'])?.[0] ?? []);
    expect(new Set(scans)).toEqual(new Set(['->  Index Only Scan using runs_statistics on runs']));
  });
});

describe('the reporting time zone', () => {
  it('is in the comment of the day when it is set', async () => {
    await setReportingTimeZone(setup.connection, 'UTC');
    expect(await commentOfDay()).toContain('in the time zone UTC,');
    expect(await setReportingTimeZone(setup.connection, 'Europe/Berlin')).toBe(true);
    expect(await commentOfDay()).toContain('in the time zone Europe/Berlin,');
    expect(await setReportingTimeZone(setup.connection, 'Europe/Berlin')).toBe(false);
  });

  it('is unchanged when the server does not know the new one', async () => {
    await setReportingTimeZone(setup.connection, 'Europe/Berlin');
    await expect(setReportingTimeZone(setup.connection, 'Europe/Nowhere')).rejects.toMatchObject({ kind: 'time_zone' });
    expect(await setup.rows(sql`SELECT time_zone FROM ${sql.id('scanfeed', 'report_settings')}`)).toEqual([
      { time_zone: 'Europe/Berlin' },
    ]);
  });

  it('is set once when several daemons set it at the same time', async () => {
    await setReportingTimeZone(setup.connection, 'UTC');
    await Promise.all([1, 2, 3, 4].map(() => setReportingTimeZone(setup.connection, 'Asia/Tokyo')));
    expect(await commentOfDay()).toContain('in the time zone Asia/Tokyo,');
  });
});
