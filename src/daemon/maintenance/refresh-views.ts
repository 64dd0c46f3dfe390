import { classifyError } from '../../core/errors.js';
import type { ViewFailure } from '../../storage/reporting/build-views.js';
import { countNewChanges, type SkippedDocument } from '../../storage/reporting/new-documents.js';
import { refreshReports } from '../../storage/reporting/refresh-reports.js';
import { findFull } from '../../storage/reporting/report-view.js';
import { readReportViews } from '../../storage/reporting/stored-views.js';
import { pauseAfter } from '../../sync/retry/backoff.js';
import type { MaintenanceContext, MaintenanceTask } from './maintenance-context.js';
import { createBatchRest } from './pacing.js';

/** Time for typed views per check while a history is read, milliseconds; about half of it is rest. */
const SLICE_MS = 100;
/** Maximum time of a turn, after which tasks of other schemas run, milliseconds; about half of it is rest. */
const TURN_MS = 2_000;

/** Pauses of a view that cannot be built or stored. */
const VIEW_BACKOFF = { firstMs: 5_000, maxMs: 600_000 };
const FULL = 'their further fields are in other_fields or JSON columns; ask for documents with fewer different keys';
const SKIPPED =
  'its fields get no columns in typed views, but its run is stored; if PostgreSQL cannot read it, restore it from a backup';

/**
 * Builds typed views for new documents. Always runs once after the start: a new release may define views differently. While
 * the feed or its history is catching up, every document is new and PostgreSQL is the bottleneck, so each check searches only a
 * few documents. The first ones show the types and fields of most others; the rest follow once it has caught up.
 */
export function refreshViews(
  { settings, connection, isReadingInBulk, logger, clock }: MaintenanceContext,
  signal: AbortSignal,
): MaintenanceTask {
  let isDue = true;
  const failing = new Map<string, { readonly error: unknown; readonly failures: number; readonly retryAt: number }>();
  const isDueAt = (now: number, view: string) => (failing.get(view)?.retryAt ?? now) <= now;
  /** Each failing view has pauses of its own: its table may never accept a row, and other views need not wait. */
  const note = (failed: readonly ViewFailure[], since: number) => {
    for (const view of failing.keys()) {
      if (isDueAt(since, view) && !failed.some((each) => each.view === view)) failing.delete(view);
    }
    for (const { view, error } of failed) {
      const failures = (failing.get(view)?.failures ?? 0) + 1;
      failing.set(view, {
        error,
        failures,
        retryAt: clock.monotonic() + pauseAfter(failures, classifyError(error), 1, VIEW_BACKOFF),
      });
    }
  };
  const onSkipped = ({ scanId, error }: SkippedDocument) =>
    logger.warn('skipped a document for views', { scanId, remedy: SKIPPED, error });
  /** Builds views for some time. Returns whether new documents may be left. */
  const build = async (): Promise<boolean> => {
    const rest = createBatchRest(clock, signal);
    const since = clock.monotonic();
    let isTimeLeft = true;
    const between = async () => {
      await rest();
      // Batches differ in duration: the next one starts only if the time left is at least what all of them took so far.
      isTimeLeft = 2 * (clock.monotonic() - since) <= (isReadingInBulk() ? SLICE_MS : TURN_MS);
      return isTimeLeft;
    };
    const { views, columns, built, failed } = await refreshReports(connection, settings.readerRole, {
      between,
      onSkipped,
      isDue: (view) => isDueAt(since, view),
    });
    if (built.length > 0) {
      logger.info('built typed views', { built: built.length, newViews: views, newColumns: columns });
    }
    const full = views + columns === 0 ? [] : findFull(await readReportViews(connection));
    if (full.length > 0) logger.warn('typed views are full', { full, remedy: FULL });
    note(failed, since);
    const [first] = failing.values();
    if (first !== undefined) throw first.error;
    return !isTimeLeft;
  };
  return async function* () {
    if (!settings.typedViews) return;
    if (!isDue && (await countNewChanges(connection)) === 0) return;
    isDue = true;
    while ((await build()) && !isReadingInBulk()) yield;
    isDue = false;
  };
}
