import type { StoreConnection } from '../connection/store-connection.js';
import { buildViews, type ViewFailure } from './build-views.js';
import { findNewFields, type SkippedDocument } from './new-documents.js';
import { type DefinedView, storeNextRows } from './stored-rows.js';

/** The result of a refresh of the typed views. */
export interface Refreshed {
  /** New views and columns. */
  readonly views: number;
  readonly columns: number;
  /** Names of the views that were built or rebuilt. */
  readonly built: readonly string[];
  /** Views that could not be rebuilt, and are unchanged, and views whose tables could not be brought up to date. */
  readonly failed: readonly ViewFailure[];
  /** Another process was searching the documents. */
  readonly busy: boolean;
}

interface RefreshOptions {
  /**
   * Called after each batch with the number of changes searched so far, and stored in the tables of views; can wait. If it returns
   * false, the remaining documents are left for the next refresh.
   */
  readonly between?: (changes: number) => Promise<boolean> | boolean;
  /** Called with each document that could not be searched, which is not tried again before it changes. */
  readonly onSkipped?: (document: SkippedDocument) => void;
  /** Whether a view is built, and its rows stored, this time. */
  readonly isDue?: (view: string) => boolean;
}

/**
 * Searches all new documents for new fields, in batches, and builds the changed views at the end, and after each batch with new
 * columns or views, so that reports need not wait for the last document.
 */
export async function refreshReports(
  connection: StoreConnection,
  readerRole: string | null,
  { between = () => true, onSkipped = () => {}, isDue = () => true }: RefreshOptions = {},
): Promise<Refreshed> {
  let [views, columns, changes] = [0, 0, 0];
  const built = new Set<string>();
  const build = async () => {
    const done = await buildViews(connection, readerRole, isDue);
    for (const name of done.built) built.add(name);
    return done;
  };
  const end = async (busy: boolean) => {
    const { views: defined, failed } = await build();
    const toStore = busy ? [] : defined.filter(({ view }) => view.storesRows && isDue(view.name));
    const notStored = await storeRows(connection, toStore, (stored) => {
      changes += stored;
      return between(changes);
    });
    return { views, columns, failed: [...failed, ...notStored], built: [...built], busy };
  };
  for (;;) {
    const found = await findNewFields(connection);
    if (!found?.more) return end(found === null);
    if (found.columns + found.views > 0) await build();
    views += found.views;
    columns += found.columns;
    changes += found.changes;
    if (found.skipped !== undefined) onSkipped(found.skipped);
    if (!(await between(changes))) return end(false);
  }
}

/** Brings the tables of views up to date. Returns the views for which that failed. */
async function storeRows(
  connection: StoreConnection,
  views: readonly DefinedView[],
  between: (stored: number) => Promise<boolean> | boolean,
): Promise<readonly ViewFailure[]> {
  const failed: ViewFailure[] = [];
  for (const stored of views) {
    const storeNext = () =>
      storeNextRows(connection, stored).catch((error: unknown) => {
        failed.push({ view: stored.view.name, error });
        return 0;
      });
    for (let changes = await storeNext(); changes > 0; changes = await storeNext()) {
      if (!(await between(changes))) return failed;
    }
  }
  return failed;
}
