import type { PostgresServer } from './postgres-server.js';

/** What the database says about one feed at one moment. Times in milliseconds since 1970. */
export interface Snapshot {
  readonly takenAt: number;
  /** -Infinity: from the beginning of the history. */
  readonly completeFrom: number | null;
  readonly dataCompleteAsOf: number | null;
  readonly reconciledAsOf: number | null;
  /** Backfills that were read to their end. */
  readonly backfills: readonly { readonly since: number; readonly until: number; readonly begunAt: number }[];
  /** Stored revisions by scan. */
  readonly revisions: ReadonlyMap<string, number>;
  /** Scans with an entry in open quarantine. */
  readonly quarantined: ReadonlySet<string>;
}

interface Row {
  takenAt: number;
  completeFrom: number | null;
  dataCompleteAsOf: number | null;
  reconciledAsOf: number | null;
  backfills: string | null;
  runs: string | null;
  quarantined: string | null;
}

const ms = (column: string) => `extract(epoch FROM ${column})::double precision * 1000`;

/** Reads a feed's claims and runs in one statement. Null: the feed has not been started. */
export async function takeSnapshot(server: PostgresServer, schema: string): Promise<Snapshot | null> {
  const [row] = await server.rows<Row>(`
    SELECT ${ms('clock_timestamp()')} AS "takenAt", ${ms('complete_from')} AS "completeFrom",
      ${ms('data_complete_as_of')} AS "dataCompleteAsOf", ${ms('reconciled_as_of')} AS "reconciledAsOf",
      (SELECT string_agg(concat_ws(' ', ${ms("COALESCE(since, '-infinity')")}, ${ms('until')}, ${ms('begun_at')}), ',')
        FROM ${schema}.passes WHERE kind = 'backfill' AND finished_at IS NOT NULL AND NOT cancelled) AS backfills,
      (SELECT string_agg(scan_id || ' ' || revision, ',') FROM ${schema}.runs) AS runs,
      (SELECT string_agg(scan_id, ',') FROM ${schema}.quarantine WHERE state = 'open') AS quarantined
    FROM ${schema}.feeds`);
  if (row === undefined) return null;
  const words = (text: string | null) => (text === null ? [] : text.split(',').map((item) => item.split(' ')));
  return {
    ...row,
    backfills: words(row.backfills).map(([since, until, begunAt]) => ({
      since: Number(since),
      until: Number(until),
      begunAt: Number(begunAt),
    })),
    revisions: new Map(words(row.runs).map(([scanId = '', revision]) => [scanId, Number(revision)])),
    quarantined: new Set(words(row.quarantined).map(([scanId = '']) => scanId)),
  };
}
