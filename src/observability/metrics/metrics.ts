import type { CommitCounts } from '../../core/counts.js';
import type { PollOutcome, ReadingProgress, Stage } from '../../sync/ports/index.js';
import type { FeedState } from '../feed-state.js';
import type { FailureLog } from '../log/failure-log.js';
import type { PassTracker } from '../pass-tracker.js';
import {
  BUCKETS,
  ERROR_KINDS,
  OPERATIONS,
  POLL_OUTCOMES,
  POOL_STATES,
  PURGED_TABLES,
  RECONCILE_REVISIONS,
  REQUEST_STATUSES,
  RUN_OUTCOMES,
  STAGES,
  TRUNCATED_OUTCOMES,
} from './metric-definitions.js';
import { createInstruments, type Instruments, type Name } from './prometheus.js';

export interface MetricsOptions {
  /** Labels of every metric. The gauges of feeds also have the label `feed`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  /** Monotonic milliseconds: the clock of all times passed to the metrics. */
  readonly monotonic: () => number;
  /** Returns the connections to PostgreSQL in use and idle, and the callers waiting for one. Called at each scrape. */
  readonly databasePool?: () => { readonly active: number; readonly idle: number; readonly waiting: number };
  /** Returns the number of invalid entries in the feeds file. Called at each scrape. */
  readonly invalidFeeds?: () => number;
}

export type Metrics = ReturnType<typeof createMetrics>;
export type FeedMetrics = ReturnType<Metrics['addFeed']>;

/**
 * Creates the metrics of the process and of Node, in a registry of their own. No method throws; unknown label values are
 * counted as `other`.
 */
export function createMetrics(options: MetricsOptions) {
  const { labels, version, monotonic } = options;
  const instruments = createInstruments(labels);
  const { gauge, counter, histogram } = instruments;

  const feeds = new Map<string, FeedFigures>();
  feedGauges(instruments, feeds);
  failingGauge(instruments, feeds);
  countFeeds(instruments, feeds, options.invalidFeeds);
  gauge('scanfeed_database_pool', ['state'], () =>
    POOL_STATES.map((state) => ({ labels: { state }, value: options.databasePool?.()[state] ?? 0 })),
  );
  passGauges(instruments, feeds);
  gauge('scanfeed_build_info', ['version'], () => [{ labels: { version }, value: 1 }]);

  const polls = counter('scanfeed_polls_total', 'outcome');
  const runs = counter('scanfeed_runs_total', 'outcome');
  const truncated = counter('scanfeed_truncated_results_total', 'outcome');
  const errors = counter('scanfeed_errors_total', 'stage', 'kind');
  const found = counter('scanfeed_reconcile_found_total', 'revision');
  const purged = counter('scanfeed_purged_total', 'table');
  const resets = counter('scanfeed_cursor_resets_total');
  const conflicts = counter('scanfeed_revision_conflicts_total');
  const requests = histogram('scanfeed_http_request_duration_seconds', BUCKETS.request, 'operation', 'status');
  const transactions = histogram('scanfeed_transaction_duration_seconds', BUCKETS.transaction);
  const delays = histogram('scanfeed_delivery_delay_seconds', BUCKETS.delivery);

  for (const outcome of POLL_OUTCOMES) polls.inc({ outcome }, 0);
  for (const outcome of RUN_OUTCOMES) runs.inc({ outcome }, 0);
  for (const outcome of TRUNCATED_OUTCOMES) truncated.inc({ outcome }, 0);
  for (const revision of RECONCILE_REVISIONS) found.inc({ revision }, 0);
  for (const table of PURGED_TABLES) purged.inc({ table }, 0);
  // All kinds and statuses would be nine tenths of the exposition.
  for (const stage of STAGES) errors.inc({ stage }, 0);
  for (const operation of OPERATIONS) requests.zero({ operation, status: '200' });

  return {
    /** Adds a feed, whose figures are read at each scrape. Events of all feeds are counted together. */
    addFeed(name: string, figures: FeedFigures) {
      const { state } = figures;
      feeds.set(name, figures);
      return {
        polled: (outcome: PollOutcome) => polls.inc({ outcome }),
        /** Records the counts of a commit that is known to have succeeded. */
        committed(counts: CommitCounts): void {
          for (const outcome of RUN_OUTCOMES) runs.inc({ outcome }, counts[outcome]);
          conflicts.inc(counts.conflicts);
        },
        truncated: (outcome: (typeof TRUNCATED_OUTCOMES)[number], entries: number) =>
          truncated.inc({ outcome }, entries),
        failed: (stage: Stage, kind: string) => errors.inc({ stage, kind: knownKind(kind) }),
        /** Delivery delays of entries just committed, observed only while caught up. `deliveries`: monotonic times. */
        delivered(deliveries: readonly number[]): void {
          if (!state.isCaughtUp()) return;
          for (const deliveredAt of deliveries) delays.observe(Math.max(0, monotonic() - deliveredAt) / 1000);
        },
        reconciled(counts: Readonly<Record<(typeof RECONCILE_REVISIONS)[number], number>>): void {
          for (const revision of RECONCILE_REVISIONS) found.inc({ revision }, counts[revision]);
        },
        cursorReset: () => resets.inc(),
        remove: () => void feeds.delete(name),
      };
    },
    /** @param answer the HTTP status, or the kind of the failure without one */
    requested: (operation: string, answer: number | string, durationMs: number) =>
      requests.observe(
        { operation: known(OPERATIONS, operation), status: known(REQUEST_STATUSES, String(answer)) },
        durationMs / 1000,
      ),
    transacted: (durationMs: number) => transactions.observe(durationMs / 1000),
    purged: (table: (typeof PURGED_TABLES)[number], count: number) => purged.inc({ table }, count),
    exposition: instruments.exposition,
  };
}

export interface FeedFigures {
  readonly state: FeedState;
  readonly failures: FailureLog<Stage>;
  readonly passes: PassTracker;
}

type Feeds = ReadonlyMap<string, FeedFigures>;

/** Creates the gauges of each feed. */
function feedGauges({ gauge: create }: Instruments, feeds: Feeds): void {
  const gauge = (name: Name, value: (state: FeedState) => number) =>
    create(name, ['feed'], () => [...feeds].map(([feed, { state }]) => ({ labels: { feed }, value: value(state) })));
  gauge('scanfeed_lag_seconds', (state) => state.lagSeconds() ?? Number.POSITIVE_INFINITY);
  gauge('scanfeed_data_complete_as_of_timestamp_seconds', (state) => unixSeconds(state.freshness()?.dataCompleteAsOf));
  gauge('scanfeed_last_poll_success_timestamp_seconds', (state) => unixSeconds(state.status()?.lastPollAt));
  gauge('scanfeed_last_commit_timestamp_seconds', (state) => unixSeconds(state.status()?.lastCommitAt));
  gauge('scanfeed_last_delivery_timestamp_seconds', (state) => unixSeconds(state.status()?.lastDeliveredAt));
  gauge('scanfeed_caught_up', (state) => Number(state.isCaughtUp()));
  gauge('scanfeed_leader', (state) => Number(state.isLeader()));
  gauge('scanfeed_initial_sync_complete', (state) => Number(state.status()?.initialSyncComplete ?? false));
  gauge('scanfeed_pending_results', (state) => state.status()?.pendingResults ?? 0);
  gauge('scanfeed_quarantined_entries', (state) => state.status()?.quarantinedEntries ?? 0);
  gauge('scanfeed_runs_without_data', (state) => state.status()?.runsWithoutData ?? 0);
  create('scanfeed_unusable_accepted_until_timestamp_seconds', ['feed'], () =>
    [...feeds].flatMap(([feed, { state }]) => {
      const until = state.status()?.acceptsBadUntil;
      return until ? [{ labels: { feed }, value: unixSeconds(until) }] : [];
    }),
  );
}

/** Creates the gauge of the failing stages, with the kind of the last error. A series exists only while the stage fails. */
function failingGauge({ gauge }: Instruments, feeds: Feeds): void {
  gauge('scanfeed_failing', ['feed', 'stage', 'kind'], () =>
    [...feeds].flatMap(([feed, { failures }]) =>
      STAGES.flatMap((stage) => {
        const kind = failures.kindOf(stage);
        return kind === null ? [] : [{ labels: { feed, stage, kind: knownKind(kind) }, value: 1 }];
      }),
    ),
  );
}

function countFeeds({ gauge }: Instruments, feeds: Feeds, invalidFeeds: () => number = () => 0): void {
  gauge('scanfeed_feeds', ['state'], () => {
    const leading = [...feeds.values()].filter(({ state }) => state.isLeader()).length;
    return [
      { labels: { state: 'leading' }, value: leading },
      { labels: { state: 'standby' }, value: feeds.size - leading },
      { labels: { state: 'invalid' }, value: invalidFeeds() },
    ];
  });
}

function unixSeconds(time: Date | null | undefined): number {
  return time ? time.getTime() / 1000 : 0;
}

/** Creates the gauges of the passes. A series exists only while the pass is being read. */
function passGauges({ gauge: create }: Instruments, feeds: Feeds): void {
  const gauge = (name: Name, value: (progress: ReadingProgress) => number) =>
    create(name, ['feed', 'pass'], () =>
      [...feeds].flatMap(([feed, { passes }]) =>
        passes.progress().map(({ pass, progress }) => ({ labels: { feed, pass }, value: value(progress) })),
      ),
    );
  gauge('scanfeed_pass_entries_per_second', ({ pace }) => pace?.entriesPerSecond ?? 0);
  gauge('scanfeed_pass_seconds_left', ({ pace }) => pace?.secondsLeft ?? Number.POSITIVE_INFINITY);
  gauge('scanfeed_pass_delivered_up_to_timestamp_seconds', ({ deliveredUpTo }) => unixSeconds(deliveredUpTo));
}

function known(values: readonly string[], value: string): string {
  return values.includes(value) ? value : 'other';
}

function knownKind(kind: string): string {
  return !ERROR_KINDS.includes(kind) && /^http_\d{3}$/.test(kind) ? 'http_other' : known(ERROR_KINDS, kind);
}
