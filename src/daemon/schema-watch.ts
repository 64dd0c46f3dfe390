import type { Clock } from '../core/clock.js';
import type { Readiness } from '../observability/admin/readiness.js';
import { describeError } from '../observability/log/describe-error.js';
import { createFailureLog, type Outage } from '../observability/log/failure-log.js';
import type { Logger } from '../observability/log/logger.js';
import type { DatabaseSettings } from '../settings/settings.js';
import type { Database } from '../storage/connection/pool.js';
import { connectStore } from '../storage/connection/store-connection.js';
import { inspectReaderRole } from '../storage/reporting/reader-role.js';
import { setReportingTimeZone } from '../storage/reporting/time-zone.js';
import type { Migration } from '../storage/schema/read-migrations.js';
import type { LimitedRun } from '../sync/waiting/limit-concurrency.js';
import { unlessAborted } from '../sync/waiting/unless-aborted.js';
import { whileRunning } from '../sync/waiting/while-running.js';
import { prepareReaderRole, prepareSchema } from './prepare-schema.js';

export interface WatchContext {
  /** For the checks. Each read of the feeds waits for one, so they use the connections of the leases. */
  readonly leaseDatabase: Database;
  /** For the setup of the reports. */
  readonly database: Database;
  /** Limits the direct connections of the process, for migrations and grants. */
  readonly limitDirect: LimitedRun;
  readonly migrations: () => Promise<readonly Migration[]>;
  readonly clock: Clock;
  /** Resolves once the process has its lease, without which it leads no feed. */
  readonly join: () => Promise<void>;
  /** Returns how long a schema counts as usable after a check, milliseconds. Reading the feeds requires that. */
  readonly usableMs: () => number;
  /** Called regularly while the schema is being prepared: a migration may take hours, and is not a reason to restart the process. */
  readonly onPreparing: () => void;
  /** Called with each change of a logged outage of the setup of the reports. */
  readonly onOutage?: (outage: Outage) => void;
}

/** A part of the setup of the reports. */
type Setup = 'reader role' | 'time zone';

/** Pause before a setup of the reports that failed is tried again, milliseconds. */
const REPORTS_RETRY_MS = 60_000;

/**
 * Watches whether this release can use the schema. A newer release may migrate it while the daemon is running.
 * @param stop ends a migration and the setup of the reports
 */
export function watchSchema(
  settings: DatabaseSettings,
  { database, leaseDatabase, migrations, limitDirect, clock, join, usableMs, onPreparing, onOutage }: WatchContext,
  readiness: Readiness,
  logger: Logger,
  stop: AbortSignal,
) {
  readiness.waitingFor('the database schema has not been verified yet');
  // Once per process, and without delaying the feed: reports can wait for a slow database or a missing privilege.
  let reports: Promise<unknown> | undefined;
  const prepareReader = async () => {
    const { readerRole } = settings;
    if (!settings.autoMigrate || readerRole === null) return;
    // Usually nothing is to be granted; then no direct connection is opened for each of a thousand schemas.
    if ((await inspectReaderRole(connectStore(database, settings.schema), readerRole)).reads) return;
    if (await limitDirect(() => prepareReaderRole(settings, readerRole, stop), { signal: stop })) return;
    const remedy =
      'the role of the daemon lacks the privilege to grant them; run the statements that `scanfeed migrate` prints';
    logger.warn('reader role lacks privileges', { role: readerRole, remedy });
  };
  const prepareTimeZone = async () => {
    const timeZone = settings.reportingTimeZone;
    const isNew = await setReportingTimeZone(connectStore(database, settings.schema), timeZone);
    if (isNew) logger.info('set the reporting time zone', { timeZone });
  };
  const failures = createFailureLog<Setup>({ logger, clock, holdLevel: 'warn', onOutage });
  /** Repeats a setup until it succeeds. */
  const untilDone = async (stage: Setup, setup: () => Promise<void>) => {
    while (!stop.aborted) {
      try {
        await setup();
        return failures.recovered(stage);
      } catch (error) {
        if (!stop.aborted) failures.failed(stage, error, REPORTS_RETRY_MS);
      }
      await clock.sleep(REPORTS_RETRY_MS, stop);
    }
  };
  const prepareReports = () =>
    Promise.all([untilDone('reader role', prepareReader), untilDone('time zone', prepareTimeZone)]);
  let usableUntil = Number.NEGATIVE_INFINITY;
  const prepare = async () => {
    const checkedAt = clock.monotonic();
    const wasUsable = reports !== undefined; // prepared once the schema was usable
    try {
      const known = await migrations();
      for (const name of await prepareSchema(settings, leaseDatabase, known, limitDirect, stop, wasUsable)) {
        logger.info('applied a migration', { migration: name });
      }
      if (!wasUsable) await join();
    } catch (error) {
      readiness.waitingFor(describeError(error).message);
      throw error;
    }
    usableUntil = checkedAt + usableMs();
    readiness.ready();
    reports ??= prepareReports();
  };
  let preparing: Promise<void> | null = null;
  const prepareOnce = () => {
    preparing ??= whileRunning(prepare(), onPreparing, clock).finally(() => {
      preparing = null;
    });
    return preparing;
  };
  return {
    /** Resolves when the setup of the reports has finished, at the latest soon after its signal has aborted. Never rejects. */
    finished: async (): Promise<void> => {
      await reports;
    },
    /**
     * Migrates the schema if that is enabled, unless it has just been checked. Concurrent calls share one check. Rejects if the schema
     * cannot be used, and as soon as the signal aborts.
     */
    ready: async (signal: AbortSignal): Promise<void> => {
      if (clock.monotonic() >= usableUntil) await unlessAborted(prepareOnce(), signal);
      signal.throwIfAborted();
    },
  };
}
