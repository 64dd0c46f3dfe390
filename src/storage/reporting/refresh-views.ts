import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { troubleOf } from '../../outcome/trouble.js';
import type { Tables } from '../schema.js';
import { decideColumns, type Surroundings } from './decide-columns.js';
import { endOfBatch, findFields } from './find-fields.js';
import { grantView } from './reader-role.js';
import { type ReportColumn, type ReportView, viewKey } from './report-view.js';
import { fixedColumnNames, viewDefinition, viewsWithin } from './view-definition.js';

/** Runs looked through at once, and bytes of their documents as they are stored. */
const BATCH = { runs: 1_000, bytes: 4 * 2 ** 20 };
/** A view that a report is reading cannot be changed, and whoever waits to change it holds up later reports. */
const LOCK_WAIT = '500ms';

/** What a look through new documents found. */
export interface FieldsFound {
  /** More may be to look through. */
  readonly more: boolean;
  /** Changes that were looked through, about. */
  readonly changes: number;
  readonly views: number;
  readonly columns: number;
}

/**
 * Looks through the next documents and notes new types and fields. Takes no lock that a commit waits for. Null: another
 * process is at it.
 */
export async function findNewFields(db: Kysely<unknown>, tables: Tables): Promise<FieldsFound | null> {
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ at: string }>`
      SELECT change_seq::text AS at FROM ${tables.reportProgress} FOR UPDATE SKIP LOCKED`.execute(tx);
    const at = rows[0]?.at;
    if (at === undefined) return null;
    const last = await endOfBatch(tx, tables, at, BATCH);
    if (last === null) return { more: false, changes: 0, views: 0, columns: 0 };
    const seen = await findFields(tx, tables, at, last);
    const known = await readReportViews(tx, tables);
    const views = seen.length === 0 ? known : decideColumns(known, seen, await readSurroundings(tx, tables));
    const added = await storeDecisions(tx, tables, known, views);
    await sql`UPDATE ${tables.reportProgress} SET change_seq = ${last}::bigint`.execute(tx);
    return { more: true, changes: Number(BigInt(last) - BigInt(at)), ...added };
  });
}

/** Whether documents were stored since the last look. Locks nothing. */
export async function hasNewDocuments(db: Kysely<unknown>, tables: Tables): Promise<boolean> {
  const { rows } = await sql`
    SELECT FROM ${tables.reportProgress} AS progress
    WHERE EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.change_seq > progress.change_seq)`.execute(db);
  return rows.length > 0;
}

/** Makes the next look begin with the first document. What was decided stays. */
export async function forgetProgress(db: Kysely<unknown>, tables: Tables): Promise<void> {
  await sql`UPDATE ${tables.reportProgress} SET change_seq = 0`.execute(db);
}

/** All typed views as they were decided, outer ones first. */
export async function readReportViews(db: Kysely<unknown>, tables: Tables): Promise<readonly ReportView[]> {
  const { rows } = await sql<ReportView>`
    SELECT view.id, view.name, document_type_slug AS slug, arrays,
      COALESCE(jsonb_agg(jsonb_build_object('name', field.name, 'path', field.path, 'type', field.type)
        ORDER BY field.position) FILTER (WHERE field.position IS NOT NULL), '[]') AS columns
    FROM ${tables.reportViews} AS view LEFT JOIN ${tables.reportColumns} AS field ON field.view_id = view.id
    GROUP BY view.id ORDER BY view.id`.execute(db);
  return rows;
}

/** A typed view as it is listed. */
export interface ListedView {
  readonly name: string;
  readonly slug: string;
  readonly arrays: readonly (readonly string[])[];
  readonly fields: number;
  /** Null: not built yet. */
  readonly builtAt: Date | null;
}

/** By document type, outer views first. */
export async function listReportViews(db: Kysely<unknown>, tables: Tables): Promise<readonly ListedView[]> {
  const { rows } = await sql<ListedView>`
    SELECT name, document_type_slug AS slug, arrays, built_at AS "builtAt",
      (SELECT count(*)::int FROM ${tables.reportColumns} WHERE view_id = view.id) AS fields
    FROM ${tables.reportViews} AS view ORDER BY document_type_slug, jsonb_array_length(arrays), view.id`.execute(db);
  return rows;
}

async function readSurroundings(db: Kysely<unknown>, tables: Tables): Promise<Surroundings> {
  const { rows } = await sql<{ taken: string[] | null; reserved: string[] }>`
    SELECT
      (SELECT array_agg(relname::text) FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})) AS taken,
      (SELECT array_agg(word) FROM pg_get_keywords() WHERE catcode IN ('R', 'T')) AS reserved`.execute(db);
  const reserved = new Set(rows[0]?.reserved);
  return {
    takenNames: new Set(rows[0]?.taken),
    rulesOf: (view) => ({ fixed: fixedColumnNames(view), reserved }),
  };
}

async function storeDecisions(
  tx: Kysely<unknown>,
  tables: Tables,
  known: readonly ReportView[],
  views: readonly ReportView[],
): Promise<{ readonly views: number; readonly columns: number }> {
  const before = new Map(known.map((view) => [viewKey(view), view.columns.length]));
  let columns = 0;
  for (const view of views) {
    const had = before.get(viewKey(view)) ?? 0;
    const id = view.id ?? (await storeView(tx, tables, view));
    await storeColumns(tx, tables, id, view.columns.slice(had), had);
    columns += view.columns.length - had;
  }
  return { views: views.length - known.length, columns };
}

async function storeView(tx: Kysely<unknown>, tables: Tables, { name, slug, arrays }: ReportView): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    INSERT INTO ${tables.reportViews} (name, document_type_slug, arrays)
    VALUES (${name}, ${slug}, ${JSON.stringify(arrays)}::jsonb) RETURNING id`.execute(tx);
  return rows[0]?.id ?? 0;
}

async function storeColumns(
  tx: Kysely<unknown>,
  tables: Tables,
  view: number,
  columns: readonly ReportColumn[],
  behind: number,
): Promise<void> {
  if (columns.length === 0) return;
  await sql`
    INSERT INTO ${tables.reportColumns} (view_id, position, name, path, type)
    SELECT ${view}, ${behind} + position, entry->>'name',
      ARRAY(SELECT key FROM jsonb_array_elements_text(entry->'path') WITH ORDINALITY AS step (key, place) ORDER BY place),
      entry->>'type'
    FROM jsonb_array_elements(${JSON.stringify(columns)}::jsonb) WITH ORDINALITY AS given (entry, position)`.execute(
    tx,
  );
}

/** A view that could not be brought up to date; it stays as it is and is tried again. */
export interface ViewFailure {
  readonly view: string;
  readonly error: unknown;
}

export interface ViewsBuilt {
  readonly built: readonly string[];
  readonly failed: readonly ViewFailure[];
}

/** Builds the views that are not as they were decided, each by itself: one that fails holds up no other. */
export async function buildViews(db: Kysely<unknown>, tables: Tables, readerRole: string): Promise<ViewsBuilt> {
  // First what stands, then what was decided: so a definition that is older than what stands is not built.
  const standing = await readBuilt(db, tables);
  const views = await readReportViews(db, tables);
  const within = viewsWithin(views);
  const built: string[] = [];
  const failed: ViewFailure[] = [];
  for (const view of views) {
    const definition = viewDefinition(tables, view, within.get(viewKey(view)) ?? []);
    const fingerprint = createHash('sha256').update(definition).digest('hex');
    const before = standing.get(view.name);
    if (before?.exists && before.fingerprint === fingerprint) continue;
    try {
      const build = { definition, fingerprint, replaces: before?.fingerprint ?? null, readerRole };
      if (await buildView(db, tables, view, build)) built.push(view.name);
    } catch (error) {
      failed.push({ view: view.name, error });
      if (troubleOf(error).kind === 'connection') break;
    }
  }
  return { built, failed };
}

/** What a view was built from last. */
interface Built {
  /** Null: never built. */
  readonly fingerprint: string | null;
  /** False: not built yet, or somebody dropped it. */
  readonly exists: boolean;
}

/** By name. */
async function readBuilt(db: Kysely<unknown>, tables: Tables): Promise<ReadonlyMap<string, Built>> {
  const { rows } = await sql<Built & { name: string }>`
    SELECT name, built_as AS fingerprint, EXISTS (
      SELECT FROM pg_class WHERE relkind = 'v' AND relname = view.name
        AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})) AS exists
    FROM ${tables.reportViews} AS view`.execute(db);
  return new Map(rows.map(({ name, ...built }) => [name, built]));
}

interface Build {
  readonly definition: string;
  readonly fingerprint: string;
  /** Fingerprint of what stood when the definition was made. */
  readonly replaces: string | null;
  readonly readerRole: string;
}

/** False: another process is at it, or has built it since. */
function buildView(
  db: Kysely<unknown>,
  tables: Tables,
  { id, name }: ReportView,
  { definition, fingerprint, replaces, readerRole }: Build,
): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    await sql`SET LOCAL lock_timeout = ${sql.lit(LOCK_WAIT)}`.execute(tx);
    const { rows } = await sql`
      SELECT FROM ${tables.reportViews} WHERE id = ${id} AND built_as IS NOT DISTINCT FROM ${replaces}
      FOR NO KEY UPDATE SKIP LOCKED`.execute(tx);
    if (rows.length === 0) return false;
    await sql.raw(definition).execute(tx);
    if ((await sql`SELECT FROM pg_roles WHERE rolname = ${readerRole}`.execute(tx)).rows.length > 0) {
      await grantView(tx, tables, name, readerRole);
    }
    await sql`
      UPDATE ${tables.reportViews} SET built_as = ${fingerprint}, built_at = clock_timestamp() WHERE id = ${id}`.execute(
      tx,
    );
    return true;
  });
}
