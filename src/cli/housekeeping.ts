import type { Logger } from '../observability/logger.js';
import type { DatabaseSettings } from '../settings.js';
import type { Database } from '../storage/pool.js';
import { hasNewDocuments } from '../storage/reporting/refresh-views.js';
import { tablesOf } from '../storage/schema.js';
import type { Clock } from '../sync/ports.js';
import { troubleOf } from '../sync/trouble.js';
import { refreshReports } from './refresh-reports.js';

const EVERY_MS = 5_000;

export interface Housekeeping {
  readonly settings: DatabaseSettings;
  readonly database: Database;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Whether this process writes a feed: one of several replicas is enough. */
  readonly isLeader: () => boolean;
}

/**
 * What is done beside the feed, never in its commits: typed views follow the documents. A failure is logged and
 * tried again; nothing here ever holds the feed up. Resolves after the signal has aborted; never rejects.
 */
export async function keepHouse(house: Housekeeping, signal: AbortSignal): Promise<void> {
  const { settings, database, clock, logger, isLeader } = house;
  const tables = tablesOf(settings.schema);
  // What failed, if not nothing; also what is to be done at the start: a new release may define views otherwise.
  let open: string | null = 'start';
  while (settings.typedViews && !signal.aborted) {
    await clock.sleep(EVERY_MS, signal);
    if (signal.aborted || !isLeader()) continue;
    try {
      if (open !== null || (await hasNewDocuments(database.sql, tables))) await refreshViews(house, signal);
      open = null;
    } catch (error) {
      const { kind } = troubleOf(error);
      if (!signal.aborted && kind !== open) logger.warn('the typed views could not be refreshed', { error });
      open = kind;
    }
  }
}

/** Gives way to the feed: rests after each batch for as long as the batch took. */
async function refreshViews({ settings, database, logger, clock }: Housekeeping, signal: AbortSignal): Promise<void> {
  let since = clock.monotonic();
  const { views, columns, built, failed } = await refreshReports(
    database,
    tablesOf(settings.schema),
    settings.readerRole,
    async () => {
      await clock.sleep(clock.monotonic() - since, signal);
      signal.throwIfAborted();
      since = clock.monotonic();
    },
  );
  if (built.length > 0) {
    logger.info('built typed views for reports', { built: built.length, newViews: views, newColumns: columns });
  }
  if (failed[0] !== undefined) throw failed[0].error;
}
