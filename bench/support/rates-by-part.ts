import type { BenchDatabase } from './postgres.js';
import { median } from './statistics.js';

/**
 * Runs a second in each of so many equal parts of a history, in the order in which they were written. The time of the
 * first begins with the first commit.
 * @param after the `change_seq` that the table had reached before
 */
export async function ratesByPart(database: BenchDatabase, parts: number, after = 0): Promise<number[]> {
  const marks = await database.query<{ runs: number; first: number; last: number }>(
    `SELECT count(*)::int AS runs,
       extract(epoch FROM min(synced_at))::double precision AS first,
       extract(epoch FROM max(synced_at))::double precision AS last
     FROM (
       SELECT synced_at, ntile($1) OVER (ORDER BY change_seq) AS part FROM scanfeed.runs WHERE change_seq > $2
     ) AS run
     GROUP BY part ORDER BY part`,
    [parts, after],
  );
  return marks.map(({ runs, first, last }, part) => runs / (last - (marks[part - 1]?.last ?? first)));
}

/** The median rate of each part over several readings. */
export function mediansByPart(readings: readonly (readonly number[])[]): number[] {
  return (readings[0] ?? []).map((_, part) => median(readings.map((rates) => rates[part] ?? Number.NaN)));
}
