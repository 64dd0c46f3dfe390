import { sql } from 'kysely';
import { classifyError } from '../../core/errors.js';
import { groupBy } from '../../core/group-by.js';
import { DatabaseError, sqlstateOf } from '../connection/errors.js';
import { limitLockWaits, type StoreConnection } from '../connection/store-connection.js';
import { grantView } from './reader-role.js';
import type { DefinedView } from './stored-rows.js';
import { findForeignViews, readReportViews } from './stored-views.js';
import { readRareShapes } from './value-shapes.js';
import { viewDefinition } from './view-definition.js';

/** Maximum time to wait for reports that read the view, seconds. */
const LOCK_WAIT_SECONDS = 0.5;
/** SQLSTATE of a change by a role that is not the owner. */
const REFUSED = '42501';

/** A view that could not be rebuilt. It is unchanged, and retried later. */
export interface ViewFailure {
  readonly view: string;
  readonly error: unknown;
}

/**
 * Builds the views whose definition has changed, each in its own transaction: one that fails does not block the others. Returns the
 * definitions of all views, too.
 */
export async function buildViews(
  connection: StoreConnection,
  readerRole: string | null,
  isDue: (view: string) => boolean = () => true,
) {
  const built: string[] = [];
  const failed: ViewFailure[] = [];
  const views = await defineViews(connection);
  for (const defined of views) {
    const { view, fingerprint } = defined;
    if ((view.exists && view.builtAs === fingerprint) || !isDue(view.name)) continue;
    try {
      if (await buildView(connection, defined, readerRole)) built.push(view.name);
    } catch (error) {
      failed.push({ view: view.name, error: await explainOwner(connection, view.name, error) });
      if (classifyError(error).kind === 'connection') break;
    }
  }
  return { views, built, failed };
}

/** Returns an error with the remedy if the view belongs to another role. */
async function explainOwner(connection: StoreConnection, view: string, error: unknown): Promise<unknown> {
  if (sqlstateOf(error) !== REFUSED) return error;
  const foreign = (await findForeignViews(connection)).find(({ name }) => name === view);
  if (foreign === undefined) return error;
  const message = `${view} belongs to the role ${foreign.owner}, so it cannot be changed: run ${foreign.remedy}`;
  return new DatabaseError(REFUSED, 'permission', 'hold', message);
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the current definitions of all views. */
export async function defineViews(connection: StoreConnection): Promise<readonly DefinedView[]> {
  const views = await readReportViews(connection);
  const rareShapes = await readRareShapes(connection);
  const ofType = groupBy(views, ({ slug }) => slug);
  return views.map((view) =>
    viewDefinition(connection.tables, view, ofType.get(view.slug) ?? [], rareShapes.get(view.slug) ?? NONE),
  );
}

/** Returns false if another process is building the view or has built it since its definition was read. */
function buildView(
  { db, tables }: StoreConnection,
  { view: { id, name, storesRows, builtAs }, fingerprint, statements }: DefinedView,
  readerRole: string | null,
): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    await limitLockWaits(tx, LOCK_WAIT_SECONDS);
    const { rows: locked } = await sql`
      SELECT FROM ${tables.reportViews} WHERE id = ${id} AND built_as IS NOT DISTINCT FROM ${builtAs}
      FOR NO KEY UPDATE SKIP LOCKED`.execute(tx);
    if (locked.length === 0) return false;
    await sql.raw(statements).execute(tx);
    if (
      readerRole !== null &&
      (await sql`SELECT FROM pg_roles WHERE rolname = ${readerRole}`.execute(tx)).rows.length > 0
    ) {
      await grantView({ db: tx, tables }, name, readerRole);
    }
    // The stored rows may be outdated now: they are replaced, and the view reads the documents until then.
    await sql`
      UPDATE ${tables.reportViews} SET built_as = ${fingerprint}, built_at = clock_timestamp(),
        stored_up_to = CASE WHEN ${storesRows} THEN 0 END
      WHERE id = ${id}`.execute(tx);
    return true;
  });
}
