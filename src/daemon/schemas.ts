import type { Clock } from '../core/clock.js';
import type { Readiness } from '../observability/admin/readiness.js';
import type { Outage } from '../observability/log/failure-log.js';
import type { Logger } from '../observability/log/logger.js';
import { reportSlowStore } from '../observability/log/report-slow-store.js';
import type { Metrics } from '../observability/metrics/metrics.js';
import type { Settings } from '../settings/settings.js';
import type { Database } from '../storage/connection/pool.js';
import { connectStore } from '../storage/connection/store-connection.js';
import { createProcesses } from '../storage/feeds/processes.js';
import { type Migration, readMigrations } from '../storage/schema/read-migrations.js';
import { createStore } from '../storage/store.js';
import { FeedLeases } from '../sync/lease/feed-leases.js';
import { ProcessLease, type ProcessParts } from '../sync/lease/process-lease.js';
import { type LimitedRun, limitConcurrency } from '../sync/waiting/limit-concurrency.js';
import { linkedSignal } from '../sync/waiting/linked-signal.js';
import { whileRunning } from '../sync/waiting/while-running.js';
import { checkInterval } from './check-interval.js';
import { runMaintenance } from './maintenance/run-maintenance.js';
import { prepareSchema } from './prepare-schema.js';
import { type WatchContext, watchSchema } from './schema-watch.js';

/** Minimum number of feeds in a schema for their polls to share statements; separate statements for fewer cost little. */
const BATCHED_FEEDS = 20;
/** How long a poll waits for others to share a statement with, milliseconds. */
const BATCH_WAIT_MS = 100;

/**
 * Minimum interval between two checks of whether this release can use a schema, milliseconds. Shorter than the 10 s between two
 * reads of the feeds at rest, so that each read follows a new check.
 */
const VERSION_INTERVAL_MS = 9_000;
/** Minimum interval between two checks of a schema for maintenance, milliseconds. */
const MAINTENANCE_INTERVAL_MS = 5_000;

/** Maximum number of maintenance tasks of a process at once. */
const MAINTENANCE_TASKS = 2;

/** Maximum number of direct connections of a process: each of a thousand schemas may be migrated at its start. */
const DIRECT_CONNECTIONS = 2;

export interface SchemasContext {
  readonly database: Database;
  /** For reading, taking and releasing feeds, which does not wait for commits: these may occupy all other connections. */
  readonly leaseDatabase: Database;
  /** For the lease of the process. */
  readonly processDatabase: Database;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly loggerOf: (schema: string) => Logger;
  readonly clock: Clock;
  readonly process: Pick<ProcessParts, 'holder' | 'isDead' | 'ttlMs'>;
}

export interface SchemaUser {
  readonly isLeader: () => boolean;
  readonly isReadingInBulk: () => boolean;
  readonly onPreparing: () => void;
  /** Called with each change of an outage of the maintenance or of the setup of the reports, if this is the first user of the schema. */
  readonly onOutage: (outage: Outage) => void;
}

export type Schemas = ReturnType<typeof createSchemas>;

/**
 * The schemas of the process. Each one is prepared, watched and maintained once, for all of its feeds. That of the settings, which may
 * have no feeds, has the lease of the process.
 */
export function createSchemas(settings: Pick<Settings, 'database'>, context: SchemasContext, signal: AbortSignal) {
  const open = new Map<string, MaintainedSchema>();
  const [migrations, limitDirect] = [knownMigrations(), limitConcurrency(DIRECT_CONNECTIONS)];
  const { database: home } = settings;
  /** Every feed waits for the schema of the processes. */
  const onPreparing = () => {
    for (const { users } of open.values()) for (const user of users) user.onPreparing();
  };
  const process = new ProcessLease({
    ...context.process,
    clock: context.clock,
    store: createProcesses(connectStore(context.processDatabase, home.schema)),
    ready: async () => {
      const preparing = prepareSchema(home, context.leaseDatabase, await migrations(), limitDirect, signal);
      for (const migration of await whileRunning(preparing, onPreparing, context.clock)) {
        context.loggerOf(home.schema).info('applied a migration', { migration });
      }
    },
  });
  const parts = {
    ...context,
    ...{ process, migrations, limitDirect, join: () => process.join() },
    limitMaintenance: limitConcurrency(MAINTENANCE_TASKS),
    usableMs: () => checkInterval(VERSION_INTERVAL_MS, open.size),
    checkIntervalMs: () => checkInterval(MAINTENANCE_INTERVAL_MS, open.size),
  };
  return {
    process,
    open(settings: Settings, user: SchemaUser): MaintainedSchema {
      const name = settings.database.schema;
      const schema = open.get(name) ?? maintainSchema(settings, parts, signal);
      open.set(name, schema);
      schema.users.push(user);
      return schema;
    },
    /** Closes the schema of a feed. Its maintenance ends with its last feed. Never rejects. */
    async close({ database: { schema: name } }: Settings, user: SchemaUser): Promise<void> {
      const schema = open.get(name);
      if (schema === undefined) return;
      schema.users.splice(schema.users.indexOf(user), 1);
      if (schema.users.length > 0) return;
      open.delete(name);
      await schema.end();
    },
  };
}

/**
 * Returns a function that reads the migrations of this release only once: another release may replace the files while this one
 * runs, and a copy for each of a thousand schemas would fill the memory.
 */
function knownMigrations(): WatchContext['migrations'] {
  let known: Promise<readonly Migration[]> | null = null;
  return () => {
    known ??= readMigrations().catch((error: unknown) => {
      known = null;
      throw error;
    });
    return known;
  };
}

type MaintainedSchema = ReturnType<typeof maintainSchema>;

interface SharedBySchemas extends Omit<SchemasContext, 'process'>, Omit<WatchContext, 'onPreparing' | 'onOutage'> {
  readonly process: ProcessLease;
  readonly limitMaintenance: LimitedRun;
  readonly checkIntervalMs: () => number;
}

function maintainSchema(settings: Settings, parts: SharedBySchemas, signal: AbortSignal) {
  const { database, leaseDatabase, metrics, readiness, clock, process, checkIntervalMs } = parts;
  const { schema } = settings.database;
  const users: SchemaUser[] = [];
  const ended = linkedSignal(signal);
  const logger = parts.loggerOf(schema);
  const connection = connectStore(database, schema, settings.database.homeSchema);
  const onPreparing = () => {
    for (const user of users) user.onPreparing();
  };
  const onOutage = (outage: Outage) => users[0]?.onOutage(outage);
  const watch = watchSchema(settings.database, { ...parts, onPreparing, onOutage }, readiness, logger, ended.signal);
  const openStore = (on: Database) => {
    const store = createStore(on, {
      schema,
      home: settings.database.homeSchema,
      pendingRetryMs: settings.feed.pendingRetryMs,
      keptDays: settings.database.retention.runs,
      monotonic: clock.monotonic,
      batching: { waitMs: () => (users.length < BATCHED_FEEDS ? 0 : BATCH_WAIT_MS), sleep: clock.sleep },
      onTransaction: metrics.transacted,
    });
    return reportSlowStore(store, logger, clock);
  };
  const store = openStore(database);
  const maintenance = runMaintenance(
    {
      settings: settings.database,
      ...{ connection, logger, clock, onOutage, checkIntervalMs },
      limit: parts.limitMaintenance,
      isLeader: () => users.some((user) => user.isLeader()),
      isReadingInBulk: () => users.some((user) => user.isReadingInBulk()),
      onPurged: metrics.purged,
    },
    ended.signal,
  );
  return {
    ...{ users, connection, store },
    /** The leases of all feeds that the process has in the schema. */
    leases: new FeedLeases(process, { name: schema, store: openStore(leaseDatabase), ready: watch.ready }),
    end: async () => {
      ended.abort();
      ended.unlink();
      await Promise.all([maintenance, watch.finished()]);
    },
  };
}
