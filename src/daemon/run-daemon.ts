import { hostname } from 'node:os';
import { systemClock } from '../core/clock.js';
import { packageVersion } from '../core/package.js';
import { type AdminServer, startAdminServer } from '../observability/admin/admin-server.js';
import { createLiveness } from '../observability/admin/liveness.js';
import { createReadiness } from '../observability/admin/readiness.js';
import { createFeedState } from '../observability/feed-state.js';
import type { Logger } from '../observability/log/logger.js';
import { reportSlowStore } from '../observability/log/report-slow-store.js';
import { createMetrics } from '../observability/metrics/metrics.js';
import type { StatusReport } from '../observability/status-page/status-report.js';
import { observeSync } from '../observability/sync-observer.js';
import type { PageTracer } from '../observability/tracing/tracer.js';
import { limitRate } from '../service/http/rate-limit.js';
import type { Settings } from '../settings/settings.js';
import { openDatabase, STATEMENT_DEADLINE_MS } from '../storage/connection/pool.js';
import { connectStore } from '../storage/connection/store-connection.js';
import { createErrorWriter } from '../storage/feeds/recent-errors.js';
import { createStore } from '../storage/store.js';
import type { FeedContext } from '../sync/context.js';
import { createPageLimit } from '../sync/page/page-limit.js';
import { PASS_KINDS } from '../sync/passes/pass-policy.js';
import { MAX_JOINED_PAGES } from '../sync/prefetch/join-pages.js';
import { createResultLoader, RESULT_LIMITS } from '../sync/results/resolve-truncated.js';
import { syncFeed } from '../sync/sync-feed.js';
import { createErrorRecorder } from './error-recorder.js';
import { runMaintenance } from './maintenance/run-maintenance.js';
import { createProcessBudget } from './memory.js';
import type { NotifyContext } from './notify-systemd.js';
import { openClient } from './open-client.js';
import { isDeadPredecessor, nameHolder } from './predecessor.js';
import { watchSchema } from './schema-watch.js';

/** Maximum number of pages in memory: those being committed together, and as many being prefetched. */
const MAX_HELD_PAGES = 2 * MAX_JOINED_PAGES;
/** Connections to the service that load no results: one for the feed, and one for the passes of each kind. */
const PAGE_CONNECTIONS = 1 + PASS_KINDS.length;

export interface Daemon {
  readonly admin: AdminServer;
  report(): StatusReport;
  /** Settles after the signal has aborted and everything is stopped. Rejects only because of a bug, once everything is stopped. */
  readonly stopped: Promise<void>;
}

/**
 * Creates all parts of the daemon and runs them until the signal aborts.
 * @param tracer closed at the end
 */
export function runDaemon(
  settings: Settings,
  logger: Logger,
  signal: AbortSignal,
  tracer: PageTracer | null = null,
): Daemon {
  const { feed, service } = settings;
  const clock = systemClock;
  const version = packageVersion();
  const { connection: address, poolSize } = settings.database;
  const database = openDatabase({ connection: address, maxConnections: poolSize, signal });
  const connection = connectStore(database, settings.database.schema);
  const state = createFeedState({
    monotonic: clock.monotonic,
    pollIntervalMs: feed.pollIntervalMs,
    requestTimeoutMs: service.requestTimeoutMs,
  });
  const metrics = createMetrics({
    feed: feed.name,
    version,
    state,
    monotonic: clock.monotonic,
    databasePool: database.usage,
  });
  const liveness = createLiveness(clock.monotonic);
  const readiness = createReadiness();
  const host = hostname();
  const holder = nameHolder(host, process.pid);
  const recorder = createErrorRecorder(createErrorWriter(connection, feed.name, holder), clock);
  const onOutage = recorder.record;
  const observed = observeSync({ feed: feed.name, version, state, metrics, logger, liveness, clock, onOutage, tracer });
  const admin = startAdminServer({
    ...settings.admin,
    metrics,
    liveness,
    readiness,
    version,
    single: true,
    feeds: () => [{ name: feed.name, report: observed.report, recent: observed.recent }],
    logger,
    clock,
    signal,
  });
  // One client for all requests of the process, with a connection for each concurrent request.
  const connections = feed.resolveConcurrency + PAGE_CONNECTIONS;
  const { client, close: closeClient } = openClient(service, connections, ({ operation, status, durationMs }) =>
    metrics.requested(operation, status, durationMs),
  );
  const ended = new AbortController();
  const untilEnded = AbortSignal.any([signal, ended.signal]);
  const schema = watchSchema(settings.database, database, readiness, logger, untilEnded);
  const store = createStore(database, {
    schema: settings.database.schema,
    leaseTtlMs: feed.leaseTtlMs,
    pendingRetryMs: settings.pending.retryIntervalMs,
    keptDays: settings.database.retention.runs,
    monotonic: clock.monotonic,
    onTransaction: metrics.transacted,
  });
  const parts = {
    service: limitRate(client, service.requestsPerSecond),
    store: schema.guard(reportSlowStore(store, logger, clock)),
    observer: observed.observer,
    clock,
    ready: schema.ready,
    holder,
    isDead: (other: string) => isDeadPredecessor(other, host, process.pid),
  };
  const maintenance = runMaintenance(
    { settings: settings.database, connection, isLeader: state.isLeader, metrics, logger, clock, onOutage },
    untilEnded,
  );
  const notified = notifyServiceManager(settings, { readiness, liveness, logger, clock }, untilEnded);
  const stopped = syncFeed(feedContext(settings, parts), signal).finally(async () => {
    ended.abort();
    await recorder.close();
    await Promise.all([maintenance, notified, schema.finished(), admin.close(), closeClient(), database.close()]);
    await tracer?.close();
  });
  return { admin, report: observed.report, stopped };
}

/** Notifies systemd, if it started this process. Its code is loaded only then. */
async function notifyServiceManager(
  { process: { systemd } }: Settings,
  parts: Omit<NotifyContext, 'send'>,
  signal: AbortSignal,
): Promise<void> {
  if (systemd.notifySocket === null) return;
  const { notifySystemd, systemdSender } = await import('./notify-systemd.js');
  await notifySystemd(systemd, { ...parts, send: systemdSender(systemd.notifySocket) }, signal);
}

type Parts = Pick<FeedContext, 'service' | 'store' | 'observer' | 'clock' | 'ready' | 'holder' | 'isDead'>;

function feedContext({ feed, service, pending, reconcile, database }: Settings, parts: Parts): FeedContext {
  const { name, filters, markdown, pageLimit, keepHistory, start, resolveConcurrency: concurrency } = feed;
  const budget = createProcessBudget(feed.memoryBudgetBytes);
  return {
    ...parts,
    budget,
    pageLimit: createPageLimit(pageLimit, budget.bytes, parts.observer.pageLimited),
    loader: createResultLoader({ ...parts, budget, markdown, concurrency }),
    identity: { name, baseUrl: service.baseUrl, filters, keepHistory, start },
    leaseTtlMs: feed.leaseTtlMs,
    read: { filters, markdown, pageLimit },
    pollIntervalMs: feed.pollIntervalMs,
    pendingRetryMs: pending.retryIntervalMs,
    maxResultCommits: Math.max(1, Math.floor(database.poolSize / 2)),
    reconcile,
    maxHeldPages: MAX_HELD_PAGES,
    stepMs: 2 * service.requestTimeoutMs + RESULT_LIMITS.pageMs + STATEMENT_DEADLINE_MS,
  };
}
