import type { BenchDatabase } from './postgres.js';
import { median } from './statistics.js';

/**
 * Runs a second in each of so many equal parts of a history, in the order in which they were written. A run's time is when
 * its statement began. The first statement's runs do not count, as the time of the last one is not in it.
 * @param after the `change_seq` that the table had reached before
 */
export async function ratesByPart(database: BenchDatabase, parts: number, after = 0): Promise<number[]> {
  const marks = await database.query<{ runs: number; began: number; ended: number }>(
    `SELECT count(*) FILTER (WHERE synced_at > began)::int AS runs,
       extract(epoch FROM min(began))::double precision AS began,
       extract(epoch FROM max(synced_at))::double precision AS ended
     FROM (
       SELECT synced_at, min(synced_at) OVER () AS began, ntile($1) OVER (ORDER BY change_seq) AS part
       FROM scanfeed.runs
       WHERE change_seq > $2
     ) AS run
     GROUP BY part ORDER BY part`,
    [parts, after],
  );
  return marks.map(({ runs, began, ended }, part) => runs / (ended - (marks[part - 1]?.ended ?? began)));
}

/** The median rate of each part over several readings. */
export function mediansByPart(readings: readonly (readonly number[])[]): number[] {
  return (readings[0] ?? []).map((_, part) => median(readings.map((rates) => rates[part] ?? Number.NaN)));
}
