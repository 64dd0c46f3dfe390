import { createLiveness, type Liveness } from '../../observability/admin/liveness.js';
import type { ShownFeed } from '../../observability/admin/status-routes.js';
import { createFeedState } from '../../observability/feed-state.js';
import { createFailureLog, type Outage } from '../../observability/log/failure-log.js';
import { createPassTracker } from '../../observability/pass-tracker.js';
import { observeSync } from '../../observability/sync-observer.js';
import type { Settings } from '../../settings/settings.js';
import { STATEMENT_DEADLINE_MS } from '../../storage/connection/pool.js';
import { createErrorWriter } from '../../storage/operator/recent-errors.js';
import { createStoredSchema } from '../../storage/schema/schema-contents.js';
import type { FeedSettings } from '../../sync/context.js';
import { MAX_JOINED_PAGES } from '../../sync/page/join-pages.js';
import type { Stage } from '../../sync/ports/index.js';
import { createResultLoader, RESULT_LIMITS } from '../../sync/results/resolve-truncated.js';
import { syncFeed } from '../../sync/sync-feed.js';
import { createErrorRecorder } from '../error-recorder.js';
import type { SharedParts } from '../shared-parts.js';
import { assertOwnSchema, type FeedRelations } from './assert-own-schema.js';

const MAX_PAGE_COMMITS = 2;
/** Maximum number of pages in memory: those that are being committed, and those that are prefetched for the next commit. */
const MAX_HELD_PAGES = (MAX_PAGE_COMMITS + 1) * MAX_JOINED_PAGES;
/** Maximum time in which a feed stops, milliseconds: its commit, its pending results, its errors and its schema, one after another. */
const STOP_MS = 4 * STATEMENT_DEADLINE_MS;

/** How a feed is started. */
export interface FeedStart extends FeedRelations {
  /** How long to wait before the first poll, so that many feeds do not poll at the same time, milliseconds. */
  readonly firstPollInMs: number;
}

/** A feed that is being followed, as the admin server shows it. */
export interface RunningFeed extends ShownFeed {
  readonly liveness: Liveness;
  /** Settles after the signal has aborted and everything of the feed is stopped. Rejects only because of a bug. */
  readonly stopped: Promise<void>;
}

/**
 * Creates all parts of a feed and follows it until the signal aborts.
 */
export function runFeed(
  settings: Settings,
  shared: SharedParts,
  signal: AbortSignal,
  { firstPollInMs, ...place }: FeedStart,
): RunningFeed {
  const { feed, service: serviceSettings } = settings;
  const { clock, version, tracer, budget } = shared;
  const logger = shared.loggerOf(feed.name);
  const liveness = createLiveness(clock.monotonic);
  // A statement that is cut off from the server delays the stop, and is not a reason to restart the process.
  signal.addEventListener('abort', () => liveness.ticked(STOP_MS), { once: true });
  const tick = (nextStepMs: number) => {
    if (!signal.aborted) liveness.ticked(nextStepMs);
  };
  const state = createFeedState({
    monotonic: clock.monotonic,
    pollIntervalMs: feed.pollIntervalMs,
    requestTimeoutMs: serviceSettings.requestTimeoutMs,
  });
  const onOutage = (outage: Outage) => recorder.record(outage);
  const failures = createFailureLog<Stage>({ logger, clock, onOutage });
  const passes = createPassTracker(logger, clock);
  const metrics = shared.metrics.addFeed(feed.name, { state, failures, passes });
  const user = {
    isLeader: state.isLeader,
    isReadingInBulk: passes.isReadingInBulk,
    onPreparing: () => tick(STATEMENT_DEADLINE_MS),
    onOutage,
  };
  const schema = shared.schemas.open(settings, user);
  const recorder = createErrorRecorder(createErrorWriter(schema.connection, feed.name, shared.holder), clock);
  const { observer, report, recent, answeredByCache } = observeSync({
    ...{ feed: feed.name, version, state, metrics, logger, failures, passes, clock, tracer },
    onTick: tick,
  });
  const { service, close } = shared.services.open(serviceSettings, ({ operation, status, durationMs, cache }) => {
    shared.metrics.requested(operation, status, durationMs);
    if (cache !== null) answeredByCache(cache);
  });
  const { store, leases } = schema;
  const follow = async () => {
    if (firstPollInMs > 0) {
      observer.ticked(firstPollInMs);
      await clock.sleep(firstPollInMs, signal);
    }
    const { name, markdown, resolveConcurrency: concurrency } = feed;
    const parts = { service, store, clock, budget };
    const keptDays = settings.database.retention.runs;
    const loader = createResultLoader({ ...parts, markdown, concurrency, keptDays });
    const context = { ...parts, loader, leases, observer, settings: feedSettings(settings) };
    await syncFeed(context, signal, async (until) => {
      const stored = createStoredSchema(schema.connection, name);
      const { schema: own } = settings.database;
      await assertOwnSchema({ ...place, baseUrl: serviceSettings.baseUrl, schema: own }, stored, loader, until);
    });
  };
  const stopped = follow().finally(async () => {
    await recorder.close();
    await Promise.all([shared.schemas.close(settings, user), close()]);
    metrics.remove();
  });
  return { name: feed.name, report, recent, liveness, stopped };
}

function feedSettings({ feed, service, reconcile, database }: Settings): FeedSettings {
  const { name, filters, markdown, pageLimit: pageSize, keepHistory, start, pollIntervalMs, pendingRetryMs } = feed;
  return {
    identity: { name, baseUrl: service.baseUrl, filters, keepHistory, start },
    ...{ markdown, pageSize, reconcile, pollIntervalMs, pendingRetryMs },
    stepMs: 2 * service.requestTimeoutMs + RESULT_LIMITS.pageMs + STATEMENT_DEADLINE_MS,
    maxHeldPages: MAX_HELD_PAGES,
    // In a small pool, one connection is left for other statements.
    maxPageCommits: database.poolSize > MAX_PAGE_COMMITS ? MAX_PAGE_COMMITS : 1,
    maxResultCommits: Math.max(1, Math.floor(database.poolSize / 2)),
  };
}
