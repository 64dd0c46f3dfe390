import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { type AdminServer, startAdminServer } from '../observability/admin-server.js';
import { createLiveness } from '../observability/liveness.js';
import { createLogger, type Logger } from '../observability/logger.js';
import { createMetrics } from '../observability/metrics.js';
import { createReadiness } from '../observability/readiness.js';
import type { StatusReport } from '../observability/status-report.js';
import { observeSync } from '../observability/sync-observer.js';
import { RecognitionClient } from '../service/client.js';
import { createDispatcher } from '../service/dispatcher.js';
import { limitRate } from '../service/rate-limit.js';
import { readSettings, type Settings } from '../settings.js';
import { openDatabase, STATEMENT_DEADLINE_MS } from '../storage/pool.js';
import { createStore } from '../storage/store.js';
import { followFeed } from '../sync/loop.js';
import { createResultLoader, RESULT_LIMITS } from '../sync/resolve-truncated.js';
import { prepareSchema } from './open-database.js';
import { untilStopped } from './stop-signals.js';
import { systemClock } from './system-clock.js';
import { packageVersion } from './version.js';

/** Pages held at once: one being committed, one ready, and one or two on their way. */
const PAGES_AHEAD = 4;

/** `scanfeed run`: the daemon. Ends with 0 on SIGTERM and SIGINT; waits for whatever else is missing. */
export function register(program: Command): void {
  program
    .command('run')
    .description('Keep the database in step with the delivery feed, until SIGTERM or SIGINT.')
    .addHelpText('after', '\nSettings come from the environment: see docs/settings.md.')
    .action(async () => {
      const settings = readSettings();
      const logger = createLogger({
        ...settings.process,
        level: settings.process.logLevel,
        feed: settings.feed.name,
        version: packageVersion(),
      });
      for (const warning of settings.warnings) logger.warn(warning);
      await untilStopped((signal) => runDaemon(settings, logger, signal).stopped, settings.process.shutdownTimeoutMs);
      logger.info('stopped');
    });
}

export interface Daemon {
  readonly admin: AdminServer;
  report(): StatusReport;
  /** Settles when everything is stopped, after the signal has aborted. */
  readonly stopped: Promise<void>;
}

/** Puts the parts together: the one place that knows them all. */
export function runDaemon(settings: Settings, logger: Logger, signal: AbortSignal): Daemon {
  const { feed, service, database: databaseSettings } = settings;
  const clock = systemClock;
  const { monotonic } = clock;
  const version = packageVersion();
  const database = openDatabase({ connection: databaseSettings.connection, maxConnections: databaseSettings.poolSize });
  const metrics = createMetrics({
    feed: feed.name,
    version,
    monotonic,
    pollIntervalMs: feed.pollIntervalMs,
    requestTimeoutMs: service.requestTimeoutMs,
    databasePool: database.usage,
  });
  const liveness = createLiveness(monotonic);
  const readiness = createReadiness();
  readiness.waitingFor('the database schema was not seen to be current yet');
  const { observer, report } = observeSync({ feed: feed.name, version, metrics, logger, liveness, clock });
  const dispatcher = createDispatcher({ proxy: service.readProxy(), connections: feed.resolveConcurrency + 2 });
  const client = new RecognitionClient({
    baseUrl: service.baseUrl,
    apiKey: service.readApiKey,
    requestTimeoutMs: service.requestTimeoutMs,
    dispatcher,
    userAgent: `scanfeed/${version}`,
    onRequest: ({ operation, status, durationMs }) => metrics.requested(operation, status, durationMs),
  });
  const limited = limitRate(client, service.requestsPerSecond);
  const store = createStore(database, {
    schema: databaseSettings.schema,
    leaseTtlMs: feed.leaseTtlMs,
    pendingRetryMs: settings.pending.retryIntervalMs,
    monotonic,
    onTransaction: metrics.transacted,
  });
  const admin = startAdminServer({
    ...settings.admin,
    metrics,
    liveness,
    readiness,
    status: report,
    logger,
    clock,
    signal,
  });
  const following = followFeed(
    {
      service: limited,
      store,
      observer,
      clock,
      loader: createResultLoader({
        service: limited,
        store,
        clock,
        markdown: feed.markdown,
        concurrency: feed.resolveConcurrency,
      }),
      ready: onceDone(async () => {
        for (const name of await prepareSchema(databaseSettings, database)) {
          logger.info('applied a migration', { migration: name });
        }
        readiness.ready();
      }),
      identity: {
        name: feed.name,
        baseUrl: service.baseUrl,
        filters: feed.filters,
        keepHistory: feed.keepHistory,
        start: feed.start === 'live' ? 'beginning' : feed.start,
      },
      holder: `${hostname()}/${process.pid}/${randomUUID().slice(0, 8)}`,
      leaseTtlMs: feed.leaseTtlMs,
      read: { filters: feed.filters, markdown: feed.markdown, pageLimit: feed.pageLimit },
      pollIntervalMs: feed.pollIntervalMs,
      pendingRetryMs: settings.pending.retryIntervalMs,
      reconcile: settings.reconcile,
      memoryBudget: feed.memoryBudgetBytes,
      pagesAhead: PAGES_AHEAD,
      stepMs: 2 * service.requestTimeoutMs + RESULT_LIMITS.pageMs + STATEMENT_DEADLINE_MS,
    },
    signal,
  );
  const stopAll = async () => {
    await following;
    await Promise.all([admin.close(), client.close(), database.close()]);
    await dispatcher.destroy();
  };
  return { admin, report, stopped: stopAll() };
}

/** Repeats work until it has succeeded once. */
function onceDone(work: () => Promise<void>): () => Promise<void> {
  let done = false;
  return async () => {
    if (!done) await work();
    done = true;
  };
}
