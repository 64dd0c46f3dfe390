import { sql } from 'kysely';
import type { Database } from '../../src/storage/connection/pool.js';

/** Views that a reader copies; each row belongs to one run. */
const VIEWS = ['runs', 'productive_runs', 'failed_runs', 'document_rechnung', 'document_rechnung_positionen'] as const;

/** The rows of a run in one of the views, as text. */
interface RowsOfRun {
  readonly view: string;
  readonly scan_id: string;
  readonly rows: string;
}

/** What the views say, by view and run. */
export type Contents = Readonly<Record<string, string>>;

interface Change {
  readonly change_seq: string;
  readonly scan_id: string;
}

const ALL_VIEWS = sql.join(
  VIEWS.map(
    (view) =>
      sql`SELECT ${view} AS view, scan_id, to_jsonb(row)::text AS row FROM ${sql.id('scanfeed_reporting', view)} AS row`,
  ),
  sql` UNION ALL `,
);

/** Returns what the views say about all runs, or about some. */
export async function readContents({ sql: db }: Database, scanIds: readonly string[] | null = null): Promise<Contents> {
  const { rows } = await sql<RowsOfRun>`
    SELECT view, scan_id, string_agg(row, chr(10) ORDER BY row) AS rows FROM (${ALL_VIEWS}) AS said
    WHERE ${scanIds}::text[] IS NULL OR scan_id = ANY (${scanIds}::text[])
    GROUP BY view, scan_id`.execute(db);
  return Object.fromEntries(rows.map(({ view, scan_id, rows: text }) => [`${view}/${scan_id}`, text]));
}

/** A reader that keeps a copy of the views as docs/reporting.md recommends. */
export interface Copier {
  /** The copy. */
  contents(): Contents;
  /** Reads up to `limit` changes and replaces these runs in the copy. Returns whether there may be more. */
  poll(limit: number): Promise<boolean>;
}

export function createCopier(database: Database): Copier {
  const copy = new Map<string, string>();
  let last = '0';
  return {
    contents: () => Object.fromEntries(copy),
    async poll(limit) {
      const { rows: changes } = await sql<Change>`
        SELECT change_seq::text, scan_id FROM scanfeed_reporting.changes
        WHERE change_seq > ${last}::bigint ORDER BY change_seq LIMIT ${limit}`.execute(database.sql);
      const scanIds = changes.map(({ scan_id }) => scan_id);
      const replaced = await readContents(database, scanIds);
      for (const scanId of scanIds) for (const view of VIEWS) copy.delete(`${view}/${scanId}`);
      for (const [key, rows] of Object.entries(replaced)) copy.set(key, rows);
      last = changes.at(-1)?.change_seq ?? last;
      return changes.length === limit;
    },
  };
}
