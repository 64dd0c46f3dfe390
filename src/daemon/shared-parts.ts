import { hostname } from 'node:os';
import type { Clock } from '../core/clock.js';
import { createLookup } from '../core/host-lookup.js';
import { packageVersion } from '../core/package.js';
import { createReadiness } from '../observability/admin/readiness.js';
import type { LogFields, ProcessLogger } from '../observability/log/logger.js';
import { createMetrics } from '../observability/metrics/metrics.js';
import type { PageTracer } from '../observability/tracing/tracer.js';
import type { Settings, SettingsFor } from '../settings/settings.js';
import { LEASE_CONNECTIONS, openDatabase, STATEMENT_DEADLINE_MS } from '../storage/connection/pool.js';
import { linkedSignal } from '../sync/waiting/linked-signal.js';
import { maxRequests, type SharedParts } from './feeds/run-feed.js';
import { createProcessBudget } from './memory.js';
import { isDeadPredecessor, nameHolder } from './predecessor.js';
import { createSchemas } from './schemas.js';
import { createServiceConnections } from './service-connections.js';

const MIB = 1024 * 1024;

/** Maximum number of connections to a service for all feeds of a file. Slow organizations do not use up all of them. */
const SHARED_CONNECTIONS = 256;

/** Number of released bytes that triggers a garbage collection while many feeds are read: they hold much more that is not released. */
const COLLECT_EVERY_BYTES = 16 * MIB;

/** The settings of the process, which all of its feeds share. */
export type ProcessSettings = SettingsFor<'feed' | 'database' | 'admin' | 'process'>;

export interface ProcessContext {
  readonly logger: ProcessLogger;
  readonly tracer: PageTracer | null;
  readonly clock: Clock;
}

/** The feeds that the process follows. */
interface FollowedFeeds {
  /** The only feed of the process; null if it follows those of a file. */
  readonly single: Settings | null;
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
  { single, invalidFeeds }: FollowedFeeds,
  signal: AbortSignal,
) {
  const version = packageVersion();
  const { poolSize } = settings.database;
  const ttlMs = settings.feed.leaseTtlMs;
  const lookup = createLookup();
  const connection = { ...settings.database.connection, lookup };
  // With many feeds, statements normally queue for a connection. That is no reason to report an exhausted pool early.
  const queueing = single === null ? { queueDeadlineMs: STATEMENT_DEADLINE_MS } : {};
  const database = openDatabase({
    ...{ connection, maxConnections: poolSize, sizeSetting: 'SCANFEED_DATABASE_POOL', signal },
    ...queueing,
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
    feed: single?.feed.name ?? null,
    version,
    monotonic: clock.monotonic,
    databasePool: database.usage,
    ...(single === null && { invalidFeeds }),
  });
  const readiness = createReadiness();
  const services = createServiceConnections(single === null ? SHARED_CONNECTIONS : maxRequests(single), clock, lookup);
  // The only feed is already named in every line.
  const loggerOf = (fields: LogFields) => (single === null ? logger.with(fields) : logger);
  const ofSchema = (schema: string) => loggerOf({ schema });
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
  const shared: SharedParts = {
    ...{ clock, version, metrics, tracer, services },
    loggerOf: (feed) => loggerOf({ feed }),
    schemas,
    holder,
    budget: createProcessBudget(settings.feed.memoryBudgetBytes, single === null ? COLLECT_EVERY_BYTES : undefined),
  };
  const close = async () => {
    leaving.abort();
    await Promise.all([services.close(), kept]);
    await Promise.all(Object.values(databases).map((each) => each.close()));
    await tracer?.close();
  };
  return { shared, metrics, readiness, close };
}
