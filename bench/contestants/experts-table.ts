import type pg from 'pg';

/** The table of somebody who knows PostgreSQL: the columns and indexes of scanfeed's, and a number for each change. */
export async function createExpertsTable(client: pg.Client): Promise<void> {
  await client.query(`
    CREATE TABLE IF NOT EXISTS expert (LIKE scanfeed.runs INCLUDING ALL);
    CREATE SEQUENCE IF NOT EXISTS expert_change;
    CREATE TABLE IF NOT EXISTS feed_cursor (cursor text);
    INSERT INTO feed_cursor SELECT NULL WHERE NOT EXISTS (TABLE feed_cursor)`);
}

const COLUMNS = `revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
  partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at, result_state, feed,
  stored_by, repaired, first_synced_at, synced_at, change_seq`;

/**
 * Returns the statement that stores the entries of pages, each scan at its highest revision, and the cursor.
 * @param pages a query for `page`, a page as jsonb
 */
export function storePages(pages: string): string {
  return `
    WITH page AS MATERIALIZED (${pages}),
    stored AS (
      INSERT INTO expert AS run (scan_id, ${COLUMNS})
      SELECT DISTINCT ON ("scanId") "scanId", revision, status, environment, "documentType"->>'slug',
        "documentType"->>'name', "fileName", "partnerName", COALESCE("partnerTestMode", false), "ocrConfidence", data,
        "failureReason", error, "submittedAt", "completedAt", "deliveredAt", 'complete', 'default', 'feed', false,
        now(), now(), nextval('expert_change')
      FROM page, jsonb_to_recordset(page->'items') AS entry (
        "scanId" text, revision integer, status text, environment text, "documentType" jsonb, "fileName" text,
        "partnerName" text, "partnerTestMode" boolean, "ocrConfidence" double precision, data jsonb, "failureReason" text,
        error text, "submittedAt" timestamptz, "completedAt" timestamptz, "deliveredAt" timestamptz)
      ORDER BY "scanId", revision DESC
      ON CONFLICT (scan_id) DO UPDATE SET (${COLUMNS}) = ROW (${COLUMNS.replaceAll(/\w+/g, 'excluded.$&')})
      WHERE excluded.revision > run.revision
    )
    UPDATE feed_cursor SET cursor = (SELECT page->>'nextCursor' FROM page ORDER BY page->>'nextCursor' DESC LIMIT 1)`;
}

/** The text of a page, and the cursor at its end; null after the last entry. */
export interface PageText {
  readonly text: string;
  readonly next: string;
}

/** Reads a page without parsing it. */
export async function readPage(url: string, apiKey: string, cursor: string | null): Promise<PageText | null> {
  const query = new URLSearchParams({ status: 'completed,failed', environment: 'prod', limit: '200' });
  if (cursor !== null) query.set('cursor', cursor);
  const response = await fetch(`${url}/scans?${query}`, { headers: { authorization: `Bearer ${apiKey}` } });
  const text = await response.text();
  const next = /"nextCursor":"([^"]*)"[^"]*$/.exec(text.slice(-1_000))?.[1];
  if (next === undefined) throw new Error('a page without a cursor');
  return text.startsWith('{"items":[]') ? null : { text, next };
}

/** Stores all pages, reading the next one meanwhile. Returns the number of stored runs. */
export async function storeAllPages(
  client: pg.Client,
  { serviceUrl, apiKey }: { readonly serviceUrl: string; readonly apiKey: string },
  store: (page: PageText) => Promise<unknown>,
): Promise<number> {
  for (let page = await readPage(serviceUrl, apiKey, null); page !== null; ) {
    const [next] = await Promise.all([readPage(serviceUrl, apiKey, page.next), store(page)]);
    page = next;
  }
  const { rows } = await client.query<{ runs: number }>('SELECT count(*)::int AS runs FROM expert');
  return rows[0]?.runs ?? 0;
}
