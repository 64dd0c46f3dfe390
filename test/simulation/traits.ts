import { type FeedFilters, UNFILTERED } from '../../src/core/feed-filters.js';
import type { ReconcileSettings } from '../../src/sync/context.js';
import type { FeedIdentity } from '../../src/sync/ports/index.js';
import type { Choices } from './random-choices.js';

/** Properties of the service in one history. */
export interface ServiceTraits {
  /** Whether cursors change with every poll, also at the end. */
  readonly movingCursors: boolean;
  /** Whether a cursor is rejected with filters other than those it was issued with. */
  readonly boundCursors: boolean;
  /** Whether the last page of the feed has no cursor. */
  readonly noCursorAtEnd: boolean;
  /**
   * Position of corrections: at the end of the sequence, before it with the delivery time of that position, or at the
   * position of the run with a new delivery time. The interface allows each meaning.
   */
  readonly corrections: 'ahead' | 'behind' | 'in place';
  /** Time of a run that `since` is compared with: its delivery, or an earlier one such as its submission. */
  readonly sinceMeaning: 'delivered' | 'earlier';
  /**
   * Effect of `since`: the feed begins with the first entry of that time, or only the page requested with `since` omits
   * earlier entries.
   */
  readonly sinceReading: 'position' | 'filter';
  readonly truncatedShare: number;
  /** Share of entries without a usable required field, or with values that PostgreSQL refuses. */
  readonly badShare: number;
  /** Share of runs that become visible where cursors may have passed. */
  readonly lateShare: number;
  /** Share of runs of the test environment. */
  readonly testShare: number;
  /** Share of repeated deliveries with other content. */
  readonly conflictShare: number;
  /** Number of runs that a page scans per requested entry, including those that the filters hide. */
  readonly scanFactor: number;
  /** Lead of the service's clock over the others, milliseconds; visible in its `Date` header. */
  readonly clockAheadMs: number;
  readonly sendsDate: boolean;
  /** Lead of the clock that sets delivery times over the service's clock, milliseconds; or each response sets them. */
  readonly deliveryClock: number | 'answer';
  /** Whether single-run responses omit optional fields. */
  readonly sparseAnswers: boolean;
  /** Share of revisions whose feed entries leave out the test mode. */
  readonly noTestModeShare: number;
}

/** Probability of each fault at one call. */
export interface Faults {
  /** The process is killed while the engine waits. */
  readonly crash: number;
  /** The process is frozen for longer than its lease, then resumes (a paused machine). */
  readonly freeze: number;
  /** The connection to the database is cut or a statement is refused; it is not executed. */
  readonly lost: number;
  /** The connection is cut after the statement was executed. */
  readonly unknown: number;
  /** The connection is cut, and the statement is executed later. */
  readonly straggler: number;
  /** The statement takes longer than the lease. */
  readonly slow: number;
  /** A request to the service fails in any possible way. */
  readonly request: number;
}

export const NO_FAULTS: Faults = { crash: 0, freeze: 0, lost: 0, unknown: 0, straggler: 0, slow: 0, request: 0 };

/** One history: its environment and its checks. */
export interface Traits {
  readonly service: ServiceTraits;
  readonly faults: Faults;
  /** Whether the database sometimes loses its last commits. */
  readonly losesCommits: boolean;
  readonly replicas: number;
  /** Names of the feeds that each process follows. Each is of another organization; all are in one set of tables. */
  readonly feeds: readonly string[];
  readonly filters: FeedFilters;
  readonly markdown: boolean;
  readonly pageSize: number;
  readonly maxHeldPages: number;
  readonly maxPageCommits: number;
  /** Bytes; small budgets fit only a few entries. */
  readonly memoryBudget: number;
  readonly reconcile: ReconcileSettings;
  /** Age of the service when the first process starts, milliseconds. */
  readonly pastMs: number;
  /** Start settings of the processes of one history; only that of the first start has an effect. */
  readonly starts: readonly FeedIdentity['start'][];
  /** Whether faults never stop, so that only invariants are checked. Otherwise everything must be stored at the end. */
  readonly faultsNeverStop: boolean;
}

const FILTERS: readonly FeedFilters[] = [
  { ...UNFILTERED, environment: 'prod' },
  UNFILTERED,
  { ...UNFILTERED, status: ['completed'], environment: 'prod' },
];

/** Age of the service at the first start, milliseconds. A `live` feed begins an hour before it, so its history must be older. */
const PAST_MS = 900_000;
const LONG_PAST_MS = 9_000_000;

/** @param begin time at which the service begins; some feeds start with deliveries near the first start */
export function chooseTraits(choices: Choices, begin: number): Traits {
  const live = choices.chance(0.25);
  const pastMs = live ? LONG_PAST_MS : PAST_MS;
  const roughness = choices.pick([0, 0.02, 0.1]);
  // Off in half of the histories: reconciliation would hide earlier mistakes by finding skipped runs.
  const reconciling = choices.chance(0.5);
  const clockAheadMs = choices.pick([0, 0, 0, 1_500, 90_000, -3_600_000]);
  const filters = choices.pick(FILTERS);
  const movingCursors = choices.chance(0.5);
  const boundCursors = choices.chance(0.25);
  const noCursorAtEnd = choices.chance(0.25);
  const memoryBudget = choices.pick([64 * 1024 * 1024, 2_500, 800]);
  const pageSize = choices.pick([1, 3, 10]);
  // Recent and full passes would leave skipped runs of the last page to the cursor (guarantee 10).
  const mayStamp = !reconciling;
  // A feed that starts now begins an hour earlier, and clocks that differ by more may skip runs.
  const behindMs = clockAheadMs < 0 ? 0 : -20_000;
  const deliveryClock = choices.pick([0, 0, 0, 20_000, behindMs, 7_200_000, mayStamp ? ('answer' as const) : 0]);
  const isStamped = deliveryClock === 'answer';
  // The engine does not recognize the end: cursors bound to filters move or are missing, or memory fits only one entry of a page
  // without a cursor, which is then always full (guarantee 10).
  const endIsHidden =
    (boundCursors && filters !== UNFILTERED && (movingCursors || noCursorAtEnd)) ||
    (noCursorAtEnd && memoryBudget < 10_000);
  return {
    service: {
      movingCursors,
      boundCursors,
      noCursorAtEnd,
      corrections: choices.pick(['ahead', 'behind', 'in place']),
      sinceMeaning: choices.pick(['delivered', 'earlier']),
      sinceReading: choices.pick(['position', 'filter']),
      truncatedShare: choices.pick([0, 0.1, 0.5]),
      badShare: isStamped ? 0 : choices.pick([0, 0.1]),
      // The time between delivery and listing of a late run would count as a difference of clocks (guarantee 10).
      lateShare: deliveryClock === 0 ? choices.pick([0, 0.1]) : 0,
      testShare: choices.pick([0, 0.2, 0.8]),
      conflictShare: choices.pick([0, 0.05]),
      scanFactor: isStamped ? 100 : choices.pick([1, 2, 100]),
      clockAheadMs,
      sendsDate: clockAheadMs !== 0 || choices.chance(0.5),
      deliveryClock,
      sparseAnswers: choices.chance(0.5),
      noTestModeShare: choices.pick([0, 0.5, 1]),
    },
    faults: {
      crash: roughness / 10,
      freeze: roughness / 20,
      lost: roughness,
      unknown: roughness,
      straggler: roughness,
      slow: roughness / 5,
      request: choices.pick([0, 0.1, 0.4]),
    },
    losesCommits: choices.chance(0.2),
    replicas: choices.pick([1, 1, 2, 3]),
    feeds: choices.pick([['default'], ['default'], ['one', 'two'], ['one', 'two', 'three']]),
    filters,
    markdown: choices.chance(0.3),
    pageSize,
    maxHeldPages: choices.between(1, 6),
    maxPageCommits: choices.pick([1, 2]),
    memoryBudget,
    reconcile: {
      intervalMs: reconciling ? 30_000 : null,
      windowMs: 600_000,
      fullIntervalMs: reconciling ? 90_000 : null,
    },
    pastMs,
    starts: startsOf(choices, live, begin + pastMs + clockAheadMs + (isStamped ? 0 : deliveryClock)),
    faultsNeverStop: endIsHidden || choices.chance(0.3),
  };
}

/** @param now time of the clock that sets delivery times */
function startsOf(choices: Choices, live: boolean, now: number): Traits['starts'] {
  if (live) return ['live'];
  return choices.chance(0.2) ? [new Date(now - choices.between(0, 600_000)), 'beginning', 'now'] : ['beginning'];
}
