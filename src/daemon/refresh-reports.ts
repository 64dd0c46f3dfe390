import type { StoreConnection } from '../storage/connection/store-connection.js';
import { buildViews, type ViewFailure } from '../storage/reporting/build-views.js';
import { findNewFields } from '../storage/reporting/new-documents.js';

/** What a refresh of the typed views did. */
export interface Refreshed {
  /** Views and columns that were decided on. */
  readonly views: number;
  readonly columns: number;
  /** Names of the views that were built, or built anew. */
  readonly built: readonly string[];
  /** What stands in the end as it was before. */
  readonly failed: readonly ViewFailure[];
  /** Another process was looking through the documents. */
  readonly busy: boolean;
}

/**
 * Looks through all documents that are new, batch by batch, and builds what has changed: early on, so that reports need
 * not wait for the last document.
 * @param between called after each batch with the changes looked through so far; may wait. False: the rest is left for
 * another time
 */
export async function refreshReports(
  connection: StoreConnection,
  readerRole: string,
  between: (changes: number) => Promise<boolean> | boolean = () => true,
): Promise<Refreshed> {
  let [views, columns, changes] = [0, 0, 0];
  const built = new Set<string>();
  const build = async () => {
    const done = await buildViews(connection, readerRole);
    for (const name of done.built) built.add(name);
    return done.failed;
  };
  const end = async (busy: boolean) => ({ views, columns, failed: await build(), built: [...built], busy });
  for (;;) {
    const found = await findNewFields(connection);
    if (!found?.more) return end(found === null);
    if (found.columns + found.views > 0) await build();
    views += found.views;
    columns += found.columns;
    changes += found.changes;
    if (!(await between(changes))) return end(false);
  }
}
