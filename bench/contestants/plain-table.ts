/** The table of those who write a script of their own: the interface's fields, a key, and what was not thought of. */
export const PLAIN_TABLES = `
  CREATE TABLE runs (
    scan_id text PRIMARY KEY,
    revision integer NOT NULL,
    status text NOT NULL,
    environment text NOT NULL,
    document_type_slug text,
    document_type_name text,
    file_name text NOT NULL,
    partner_name text,
    partner_test_mode boolean,
    ocr_confidence double precision,
    data jsonb,
    failure_reason text,
    error text,
    submitted_at timestamptz,
    completed_at timestamptz,
    delivered_at timestamptz
  );
  CREATE TABLE feed_cursor (cursor text)`;

const COLUMNS = [
  'scan_id',
  'revision',
  'status',
  'environment',
  'document_type_slug',
  'document_type_name',
  'file_name',
  'partner_name',
  'partner_test_mode',
  'ocr_confidence',
  'data',
  'failure_reason',
  'error',
  'submitted_at',
  'completed_at',
  'delivered_at',
];

export const UPSERT = `
  INSERT INTO runs (${COLUMNS.join()}) VALUES (${COLUMNS.map((_, index) => `$${index + 1}`).join()})
  ON CONFLICT (scan_id) DO UPDATE SET ${COLUMNS.slice(1)
    .map((column) => `${column} = excluded.${column}`)
    .join()}
  WHERE excluded.revision > runs.revision`;

/** An entry of the feed after JSON.parse. */
export type Item = Readonly<Record<string, unknown>> & {
  readonly documentType: { readonly slug: string | null; readonly name: string | null };
};

/** An entry as the statement's parameters; `pg` writes objects as JSON. */
export function valuesOf(item: Item): unknown[] {
  return [
    item.scanId,
    item.revision,
    item.status,
    item.environment,
    item.documentType.slug,
    item.documentType.name,
    item.fileName,
    item.partnerName,
    item.partnerTestMode,
    item.ocrConfidence,
    item.data,
    item.failureReason,
    item.error,
    item.submittedAt,
    item.completedAt,
    item.deliveredAt,
  ];
}

/** A page by the language's own means. */
export async function fetchPage(
  baseUrl: string,
  apiKey: string,
  cursor: string | null,
): Promise<{ items: Item[]; nextCursor: string }> {
  const query = new URLSearchParams({ status: 'completed,failed', environment: 'prod', limit: '200' });
  if (cursor !== null) query.set('cursor', cursor);
  const response = await fetch(`${baseUrl}/scans?${query}`, { headers: { authorization: `Bearer ${apiKey}` } });
  return (await response.json()) as { items: Item[]; nextCursor: string };
}
