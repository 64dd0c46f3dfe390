import { hostname } from 'node:os';
import type { Command } from 'commander';
import { type AdminServer, startAdminServer } from '../observability/admin-server.js';
import { createLiveness } from '../observability/liveness.js';
import { createLogger, type Logger } from '../observability/logger.js';
import { createMetrics } from '../observability/metrics.js';
import { createReadiness } from '../observability/readiness.js';
import { reportSlowStore } from '../observability/report-slow-store.js';
import type { StatusReport } from '../observability/status-report.js';
import { observeSync } from '../observability/sync-observer.js';
import { limitRate } from '../service/rate-limit.js';
import { systemClock } from '../service/system-clock.js';
import { readSettings, type Settings } from '../settings.js';
import { openDatabase, STATEMENT_DEADLINE_MS } from '../storage/pool.js';
import { createStore } from '../storage/store.js';
import { connectStore } from '../storage/store-connection.js';
import { createTroubleNotes } from '../storage/troubles.js';
import type { FeedContext } from '../sync/context.js';
import { PAGES_JOINED } from '../sync/join-pages.js';
import { followFeed } from '../sync/loop.js';
import { createPageLimit } from '../sync/page-limit.js';
import { PASS_KINDS } from '../sync/pass-policy.js';
import { createResultLoader, RESULT_LIMITS } from '../sync/resolve-truncated.js';
import { thisProcess } from './command-process.js';
import { keepHouse } from './housekeeping.js';
import { createProcessBudget } from './memory.js';
import { isDeadPredecessor, nameHolder } from './predecessor.js';
import { watchSchema } from './schema-watch.js';
import { untilStopped } from './stop-signals.js';
import { keepTroubleNotes } from './trouble-notes.js';
import { packageVersion } from './version.js';
import { openClient } from './with-service.js';

/** Pages held at once: those being committed together, and as many that are ready or on their way. */
const PAGES_AHEAD = 2 * PAGES_JOINED;
/** One for the feed, and one for the passes of each kind. */
const CONNECTIONS_BESIDES_RESULTS = 1 + PASS_KINDS.length;

const examples = `
Settings come from the environment: see docs/settings.md.

Examples:
  $ export SCANFEED_BASE_URL=https://recognition.example/v1
  $ export SCANFEED_API_KEY_FILE=/run/secrets/recognition-key
  $ export DATABASE_URL=postgres://scanfeed@db.example/invoices
  $ scanfeed run
  With a line for each page:
    $ SCANFEED_LOG_LEVEL=debug scanfeed run
  With lines for people, in a terminal:
    $ SCANFEED_LOG_FORMAT=pretty scanfeed run`;

/** `scanfeed run`: the daemon. Ends with 0 on SIGTERM and SIGINT; waits for whatever else is missing. */
export function register(program: Command): void {
  program
    .command('run')
    .description('Keep the database in step with the delivery feed, until SIGTERM or SIGINT.')
    .addHelpText('after', examples)
    .action(async () => {
      const settings = readSettings();
      const logger = createLogger({
        level: settings.process.logLevel,
        format: settings.process.logFormat,
        colours: thisProcess.colours === true,
        feed: settings.feed.name,
        version: packageVersion(),
      });
      for (const warning of settings.warnings) logger.warn(warning);
      // A terminal that closes does not end the daemon; files with keys and passwords are read again without a signal.
      process.on('SIGHUP', () => logger.info('SIGHUP ignored'));
      const startedAt = systemClock.monotonic();
      let report: Daemon['report'] | undefined;
      await untilStopped(
        (signal) => {
          const daemon = runDaemon(settings, logger, signal);
          report = daemon.report;
          return daemon.stopped;
        },
        settings.process.shutdownTimeoutMs,
        (signal) => logger.info('stopping', { signal }),
      );
      const seconds = Math.round((systemClock.monotonic() - startedAt) / 1000);
      logger.info('stopped', { runsWritten: report?.().runsWritten ?? 0, seconds });
    });
}

export interface Daemon {
  readonly admin: AdminServer;
  report(): StatusReport;
  /** Settles when everything is stopped, after the signal has aborted. Rejects, everything stopped too, for a bug alone. */
  readonly stopped: Promise<void>;
}

/** Puts the parts together: the one place that knows them all. */
export function runDaemon(settings: Settings, logger: Logger, signal: AbortSignal): Daemon {
  const { feed, service } = settings;
  const clock = systemClock;
  const version = packageVersion();
  const { connection: address, poolSize } = settings.database;
  const database = openDatabase({ connection: address, maxConnections: poolSize, signal });
  const connection = connectStore(database, settings.database.schema);
  const metrics = createMetrics({
    feed: feed.name,
    version,
    monotonic: clock.monotonic,
    pollIntervalMs: feed.pollIntervalMs,
    requestTimeoutMs: service.requestTimeoutMs,
    databasePool: database.usage,
  });
  const liveness = createLiveness(clock.monotonic);
  const readiness = createReadiness();
  const host = hostname();
  const holder = nameHolder(host, process.pid);
  const notes = keepTroubleNotes(createTroubleNotes(connection, feed.name, holder), clock);
  const onOutage = notes.note;
  const observed = observeSync({ feed: feed.name, version, metrics, logger, liveness, clock, onOutage });
  const admin = startAdminServer({
    ...settings.admin,
    metrics,
    liveness,
    readiness,
    status: observed.report,
    recent: observed.recent,
    logger,
    clock,
    signal,
  });
  // One client for all requests of the process, with as many connections as it can use at once.
  const connections = feed.resolveConcurrency + CONNECTIONS_BESIDES_RESULTS;
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
  const house = { settings: settings.database, connection, metrics, logger, clock, onOutage };
  const kept = keepHouse(house, untilEnded);
  const stopped = followFeed(feedContext(settings, parts), signal).finally(async () => {
    ended.abort();
    await notes.close();
    await Promise.all([kept, schema.over(), admin.close(), closeClient(), database.close()]);
  });
  return { admin, report: observed.report, stopped };
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
    resultCommits: Math.max(1, Math.floor(database.poolSize / 2)),
    reconcile,
    pagesAhead: PAGES_AHEAD,
    stepMs: 2 * service.requestTimeoutMs + RESULT_LIMITS.pageMs + STATEMENT_DEADLINE_MS,
  };
}
