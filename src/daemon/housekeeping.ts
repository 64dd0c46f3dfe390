import type { Clock } from '../core/clock.js';
import { createFailureLog, type Outage } from '../observability/log/failure-log.js';
import type { Logger } from '../observability/log/logger.js';
import type { Metrics } from '../observability/metrics/metrics.js';
import type { DatabaseSettings } from '../settings/settings.js';
import type { StoreConnection } from '../storage/connection/store-connection.js';
import { hasNewDocuments } from '../storage/reporting/new-documents.js';
import { createDeletedRuns } from '../storage/runs/deleted-runs.js';
import { findStranded, type StrandedResults } from '../storage/runs/pending.js';
import { refreshReports } from './refresh-reports.js';

const LOOK_EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
/** Rows removed at once: what waits for them waits some milliseconds. */
const PURGED_AT_ONCE = 500;
/** Of the time between two looks, while a history is read: a fiftieth of it, half of which is rest. */
const SLICE_MS = LOOK_EVERY_MS / 50;

export interface Housekeeping {
  readonly settings: DatabaseSettings;
  readonly connection: StoreConnection;
  readonly metrics: Pick<Metrics, 'isLeader' | 'isReading' | 'purged'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called with each change of an outage that is in the log. */
  readonly onOutage?: (outage: Outage) => void;
}

/**
 * What is done beside the feed, never in its commits, by the one of several replicas that leads: typed views follow the
 * documents, what is past the retention is removed, and what nobody cares for any more is told of. A failure is logged and tried again; nothing here holds the feed
 * up. Resolves after the signal has aborted; never rejects.
 */
export async function keepHouse(house: Housekeeping, signal: AbortSignal): Promise<void> {
  const { logger, clock, onOutage = () => {} } = house;
  // A chore keeps nothing else from being done, so its failure is no more than a warning.
  const failures = createFailureLog<Chore>({ logger, clock, holdLevel: 'warn', onChange: onOutage });
  const chores: Readonly<Record<Chore, () => Promise<void>>> = {
    views: followDocuments(house, signal),
    retention: removeWhatIsPast(house, signal),
    stranded: tellOfStranded(house),
  };
  while (!signal.aborted) {
    await clock.sleep(LOOK_EVERY_MS, signal);
    for (const chore of Object.keys(chores) as Chore[]) {
      if (signal.aborted) return;
      if (!house.metrics.isLeader()) {
        failures.reset(chore);
        continue;
      }
      try {
        await chores[chore]();
        failures.recovered(chore);
      } catch (error) {
        if (!signal.aborted) failures.failed(chore, error, LOOK_EVERY_MS);
      }
    }
  }
}

type Chore = 'views' | 'retention' | 'stranded';

/**
 * Once at the start in any case: a new release may define views otherwise. While the feed or its history is read from
 * behind, every document of which is new, only a little is looked through each time: the types and fields of most
 * documents are known from the first ones, and PostgreSQL is what a reading waits for. The rest follows once it is over.
 */
function followDocuments(
  { settings, connection, metrics, logger, clock }: Housekeeping,
  signal: AbortSignal,
): () => Promise<void> {
  let isDue = true;
  return async () => {
    if (!settings.typedViews) return;
    if (!isDue && !(await hasNewDocuments(connection))) return;
    isDue = true;
    const rest = restBetweenBatches(clock, signal);
    const since = clock.monotonic();
    const between = async () => {
      await rest();
      // Batches differ in length: another begins only if as much time is left as all of them took so far.
      const isRoomForAsMuch = 2 * (clock.monotonic() - since) <= SLICE_MS;
      return isRoomForAsMuch || !metrics.isReading();
    };
    const done = await refreshReports(connection, settings.readerRole, between);
    const { views, columns, built, failed: left } = done;
    if (built.length > 0) {
      logger.info('built typed views for reports', { built: built.length, newViews: views, newColumns: columns });
    }
    if (left[0] !== undefined) throw left[0].error;
    isDue = false;
  };
}

/** Removes what is past the retention, batch by batch. */
function removeWhatIsPast(
  { settings, connection, metrics, logger, clock }: Housekeeping,
  signal: AbortSignal,
): () => Promise<void> {
  const { retention } = settings;
  const deletedRuns = createDeletedRuns(connection);
  const kinds = [
    ['runs', retention.runs, deletedRuns.purgeRuns],
    ['run_history', retention.run_history, deletedRuns.purgeHistory],
    ['quarantine', retention.quarantine, deletedRuns.purgeQuarantine],
  ] as const;
  return hourly(clock, async () => {
    const rest = restBetweenBatches(clock, signal);
    const purged = { runs: 0, run_history: 0, quarantine: 0 };
    for (const [table, days, purgeBatch] of kinds) {
      for (let found = PURGED_AT_ONCE; days !== null && found === PURGED_AT_ONCE; await rest()) {
        found = await purgeBatch(days, PURGED_AT_ONCE);
        purged[table] += found;
        metrics.purged(table, found);
      }
    }
    if (Object.values(purged).some((number) => number > 0)) {
      const { run_history: runHistory, ...others } = purged;
      logger.info('removed what is past the retention', { ...others, runHistory });
    }
  });
}

/** Each retired feed is told of once, and again when the number has changed. */
function tellOfStranded({ connection, logger, clock }: Housekeeping): () => Promise<void> {
  let told = new Map<string, number>();
  return hourly(clock, async () => {
    const stranded = await findStranded(connection);
    for (const one of stranded) if (told.get(one.feed) !== one.results) logger.warn(STRANDED, describeStranded(one));
    told = new Map(stranded.map(({ feed, results }) => [feed, results]));
  });
}

/** Does the work once an hour; work that failed is due at once. */
function hourly(clock: Clock, work: () => Promise<void>): () => Promise<void> {
  let nextAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (clock.monotonic() < nextAt) return;
    await work();
    nextAt = clock.monotonic() + HOUR_MS;
  };
}

const STRANDED =
  'pending results are retried by nobody: their feed has had no leader for a day, and no other has its address';

function describeStranded({ feed, baseUrl, results }: StrandedResults) {
  const remedy = `if its service has moved, \`scanfeed adopt --feed ${feed} --base-url\` with the present address; if it is gone, \`scanfeed resolve --all --give-up --feed ${feed}\``;
  return { of: feed, baseUrl, results, remedy };
}

/** Gives way to the feed: rests for as long as the batch took. Ends the work when the signal aborts. */
function restBetweenBatches(clock: Clock, signal: AbortSignal): () => Promise<void> {
  let since = clock.monotonic();
  return async () => {
    await clock.sleep(clock.monotonic() - since, signal);
    signal.throwIfAborted();
    since = clock.monotonic();
  };
}
