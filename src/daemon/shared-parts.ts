import { hostname } from 'node:os';
import type { Clock } from '../core/clock.js';
import { packageVersion } from '../core/package.js';
import { createReadiness } from '../observability/admin/readiness.js';
import type { ProcessLogger } from '../observability/log/logger.js';
import { createMetrics } from '../observability/metrics/metrics.js';
import type { PageTracer } from '../observability/tracing/tracer.js';
import type { SettingsFor } from '../settings/settings.js';
import { LEASE_CONNECTIONS, openDatabase, STATEMENT_DEADLINE_MS } from '../storage/connection/pool.js';
import { linkedSignal } from '../sync/waiting/linked-signal.js';
import { createProcessBudget } from './memory.js';
import { isDeadPredecessor, nameHolder } from './predecessor.js';
import { createSchemas } from './schemas.js';
import { createServiceConnections } from './service-connections.js';

/** Maximum number of connections to each service: more than a feed needs. Slow organizations do not use up all of them. */
const CONNECTIONS = 256;

/** The settings of the process, which all of its feeds share. */
export type ProcessSettings = SettingsFor<'feed' | 'database' | 'admin' | 'process'>;

export interface ProcessContext {
  readonly logger: ProcessLogger;
  readonly tracer: PageTracer | null;
  readonly clock: Clock;
}

/** What all feeds of the process share. */
export type SharedParts = ReturnType<typeof openSharedParts>['shared'];

/** The feeds that the process follows. */
interface FollowedFeeds {
  /** The only feed of the process, label of every metric; null if it follows those of a file. */
  readonly onlyFeed: string | null;
  /** Number of invalid entries in the feeds file. Called at each scrape. */
  readonly invalidFeeds: () => number;
}

/**
 * Opens what the feeds of the process share. Close it after the last feed has stopped.
 * @param signal aborts when the process is asked to stop
 */
export function openSharedParts(
  settings: ProcessSettings,
  { logger, tracer, clock }: ProcessContext,
  { onlyFeed, invalidFeeds }: FollowedFeeds,
  signal: AbortSignal,
) {
  const version = packageVersion();
  const { poolSize } = settings.database;
  const ttlMs = settings.feed.leaseTtlMs;
  const { connection } = settings.database;
  const database = openDatabase({
    ...{ connection, maxConnections: poolSize, sizeSetting: 'SCANFEED_DATABASE_POOL', signal },
    // With many feeds, statements normally queue for a connection. That is not a reason to report an exhausted pool early.
    queueDeadlineMs: STATEMENT_DEADLINE_MS,
  });
  const leaseDatabase = openDatabase({
    ...{ connection, maxConnections: LEASE_CONNECTIONS - 1, signal },
    statementDeadlineMs: Math.min(ttlMs, STATEMENT_DEADLINE_MS),
  });
  const processDatabase = openDatabase({
    ...{ connection, maxConnections: 1, signal }, // so that renewals never wait for other statements
    // A renewal that hangs must leave time for another one.
    ...{
      statementDeadlineMs: Math.min(ttlMs / 3, STATEMENT_DEADLINE_MS),
      connectDeadlineMs: Math.min(ttlMs / 3, 10_000),
    },
  });
  const metrics = createMetrics({
    labels: onlyFeed === null ? {} : { feed: onlyFeed },
    version,
    monotonic: clock.monotonic,
    databasePool: database.usage,
    invalidFeeds,
  });
  const readiness = createReadiness();
  const services = createServiceConnections(CONNECTIONS, clock);
  const ofSchema = (schema: string) => logger.with({ schema });
  const host = hostname();
  const holder = nameHolder(host, process.pid);
  const isDead = (other: string) => isDeadPredecessor(other, host, process.pid);
  const databases = { database, leaseDatabase, processDatabase };
  const schemas = createSchemas(
    settings,
    { ...databases, metrics, readiness, loggerOf: ofSchema, clock, process: { holder, isDead, ttlMs } },
    signal,
  );
  const leaving = linkedSignal();
  const kept = schemas.process.keep(leaving.signal);
  const shared = {
    ...{ clock, version, metrics, tracer, services, schemas },
    loggerOf: (feed: string) => logger.with({ feed }),
    /** Identifies this process among those that can lead a feed. */
    holder,
    budget: createProcessBudget(settings.feed.memoryBudgetBytes),
  };
  const close = async () => {
    leaving.abort();
    await Promise.all([services.close(), kept]);
    await Promise.all(Object.values(databases).map((each) => each.close()));
    await tracer?.close();
  };
  return { shared, metrics, readiness, close };
}
