import { whole } from './figure.js';
import type { BenchDatabase } from './postgres.js';

/** Rows inserted by one statement. */
const AT_ONCE = 250_000;
const TIMES = ['submitted_at', 'completed_at', 'delivered_at'];

/**
 * Multiplies the runs that are there, under scan ids of their own, over the year up to yesterday: the table has grown run
 * by run, and those to come are newer than most of it.
 * @param rows how many there are to be, those that are multiplied not counted
 * @param sample number of runs that are multiplied, the first of the table; all by default
 * @param present how many were made before
 */
export async function multiplyRuns(
  database: BenchDatabase,
  rows: number,
  note: (text: string) => void,
  { sample, present = 0 }: { readonly sample?: number; readonly present?: number } = {},
): Promise<void> {
  await database.query(`
    CREATE TABLE sample AS SELECT row_number() OVER () - 1 AS number, run.*
    FROM (SELECT * FROM scanfeed.runs ORDER BY change_seq LIMIT ${sample ?? 'ALL'}) AS run`);
  const columns = await database.query<{ name: string }>(`
    SELECT quote_ident(attname) AS name FROM pg_attribute
    WHERE attrelid = 'scanfeed.runs'::regclass AND attnum > 0 AND NOT attisdropped
      AND attname NOT IN ('scan_id', 'change_seq')`);
  const others = columns.map(({ name }) => name);
  const earlier = `interval '1 day' * (366 - 365.0 * made.number / ${rows})`;
  const values = others.map((name) => (TIMES.includes(name) ? `${name} - ${earlier}` : name));
  for (let first = present; first < rows; first += AT_ONCE) {
    await database.query(
      `INSERT INTO scanfeed.runs (scan_id, change_seq, ${others.join()})
       SELECT gen_random_uuid()::text, nextval('scanfeed.change_seq'), ${values.join()}
       FROM generate_series($1::int, $2::int) AS made (number)
       JOIN sample ON sample.number = made.number % (SELECT count(*) FROM sample)`,
      [first, Math.min(rows, first + AT_ONCE) - 1],
    );
    note(`${whole(Math.min(rows, first + AT_ONCE))} rows`);
  }
  await database.query('DROP TABLE sample');
  // As in a table that has grown: the typed views know its documents, and do not look through millions meanwhile.
  await database.query('UPDATE scanfeed.report_progress SET change_seq = (SELECT max(change_seq) FROM scanfeed.runs)');
  await database.query('VACUUM ANALYZE scanfeed.runs');
}
