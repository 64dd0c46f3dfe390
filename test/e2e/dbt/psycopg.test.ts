import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { hasTool, requireTool, runTool } from '../../support/deployment/tools.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { refresh } from '../../support/reports.js';
import { MIGRATED, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);

/** The Python of dbt's environment, which has psycopg: dbt is a script that names it. */
const python = () => {
  const dbt = (process.env.PATH ?? '')
    .split(':')
    .map((folder) => join(folder, 'dbt'))
    .find((path) => hasTool(path));
  const [, folder = ''] = /(\/\S*\/bin\/)(?:dbt|python)/.exec(readFileSync(dbt ?? '', 'utf8')) ?? [];
  return join(folder, 'python');
};
/** Reads all rows of all views in sessions with many time zones, and prints their number. */
const READ_ALL = `
import sys, psycopg2
rows = 0
for zone in ['UTC', 'Europe/Berlin', 'Pacific/Kiritimati', 'America/St_Johns', 'Etc/GMT+12']:
    cursor = psycopg2.connect(sys.argv[1], options='-c timezone=' + zone).cursor()
    cursor.execute("SELECT format('%I.%I', schemaname, viewname) FROM pg_views WHERE schemaname = 'scanfeed_reporting'")
    for (view,) in cursor.fetchall():
        cursor.execute('SELECT * FROM ' + view)
        rows += len(cursor.fetchall())
print(rows)
`;

const TIMES = [
  ...['9999-12-31T23:59:59Z', '9999-12-31T23:59:59-14:00', '0001-01-01T00:00:00+02:00', '0001-01-01T00:00:00Z'],
  ...['9000-12-31T23:59:59-14:00', '1000-01-01T00:00:00+14:00', '2026-02-28T10:00:00Z'],
];
const DATES = ['9999-12-31', '0001-01-01', '1582-10-10', '2026-02-28'];

it('psycopg reads every view in every time zone when documents and runs have the first and last times', async (context) => {
  requireTool(context, 'dbt');
  const feed = await bench.takeFeed();
  const usual = Array.from({ length: 9 }, () => ({ am: '2026-02-28T10:00:00Z', datum: '2026-02-28' }));
  const entries = [...TIMES.map((am) => ({ am })), ...DATES.map((datum) => ({ datum })), ...usual].map(
    (data, place) => {
      const time = TIMES[place] ?? '2026-02-28T10:00:00Z';
      const times = { submittedAt: time, completedAt: time, deliveredAt: time };
      return entryJson({ scanId: `scan-${place}`, data: { ...data, liste: [data] }, ...times });
    },
  );
  await feed.commit(entries);
  await feed.commit([entryJson({ scanId: 'scan-1', revision: 2 })]);
  expect((await refresh(bench)).failed).toEqual([]);

  const { stdout, stderr } = await runTool(python(), ['-c', READ_ALL, given.url]);
  expect(stderr).toBe('');
  expect(Number(stdout)).toBeGreaterThan(5 * entries.length);

  const [counted] = await bench.rows(sql`
    SELECT count(*) FILTER (WHERE 'am' = ANY (unfit_fields))::int AS marked, count(am)::int AS held,
      count(am__text)::int AS texts, count(datum)::int AS days
    FROM scanfeed_reporting.document_rechnung`);
  const ofRevision2 = 1;
  expect(counted).toEqual({ marked: 4 - ofRevision2, held: 3 + 9, texts: 7 - ofRevision2 + 9, days: 4 + 9 });
});
