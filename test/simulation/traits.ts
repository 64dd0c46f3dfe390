import type { ReconcileSettings } from '../../src/sync/context.js';
import type { FeedFilters, FeedIdentity } from '../../src/sync/ports/index.js';
import type { Choices } from './random-choices.js';

/** Properties of the service in one history. */
export interface ServiceTraits {
  /** Cursors that change with every poll, also at the end. */
  readonly movingCursors: boolean;
  /** A cursor is rejected with other filters than those it was issued with. */
  readonly boundCursors: boolean;
  /** The last page of the feed has no cursor. */
  readonly noCursorAtEnd: boolean;
  /**
   * Corrections go to the end of the sequence, somewhere before it with the delivery time of that place, or to the place of
   * the run with a new delivery time: the interface may mean any of them.
   */
  readonly corrections: 'ahead' | 'behind' | 'in place';
  /** The time of a run that `since` is compared with: of its delivery, or an earlier one, such as its submission. */
  readonly sinceMeaning: 'delivered' | 'earlier';
  /**
   * A feed requested with `since` begins with the first entry of that time, or earlier entries are left out of the page that
   * is requested with `since`, and of no other.
   */
  readonly sinceReading: 'place' | 'filter';
  readonly truncatedShare: number;
  /** Entries without a usable required field, and values that PostgreSQL refuses. */
  readonly badShare: number;
  /** Runs that become visible where a cursor may have passed. */
  readonly lateShare: number;
  /** Runs of the test environment. */
  readonly testShare: number;
  /** The same revision again with other content. */
  readonly conflictShare: number;
  /** A page looks at this many runs for each entry asked for; those that the filters hide count. */
  readonly scanFactor: number;
  /** How far the service's clock is ahead of the others, milliseconds; its `Date` header shows it. */
  readonly clockAheadMs: number;
  readonly sendsDate: boolean;
  /** Single-run answers leave out optional fields. */
  readonly sparseAnswers: boolean;
}

/** Probability of each fault at one call. */
export interface Faults {
  /** The process is killed while the engine waits. */
  readonly crash: number;
  /** The process is frozen for longer than its lease, then resumes (a paused machine). */
  readonly freeze: number;
  /** The connection to the database is cut, or a statement is refused, and it did not happen. */
  readonly lost: number;
  /** The connection is cut, and it did happen. */
  readonly unknown: number;
  /** The connection is cut, and the statement is executed later. */
  readonly straggler: number;
  /** The statement alone takes longer than the lease. */
  readonly slow: number;
  /** A request to the service fails, in any possible way. */
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
  readonly filters: FeedFilters;
  readonly markdown: boolean;
  readonly pageLimit: number;
  readonly maxHeldPages: number;
  /** Bytes; the small ones have room for a few entries. */
  readonly memoryBudget: number;
  readonly reconcile: ReconcileSettings;
  /** Age of the service when the first process starts, milliseconds. */
  readonly pastMs: number;
  /** Settings of the start, as the processes of one history have them: only the first one counts. */
  readonly starts: readonly FeedIdentity['start'][];
  /** Faults never stop, so only invariants are checked. Otherwise everything must be stored at the end. */
  readonly restless: boolean;
}

const EVERYTHING: FeedFilters = { status: ['completed', 'failed'], environment: 'all', documentType: null };
const FILTERS: readonly FeedFilters[] = [
  { status: ['completed', 'failed'], environment: 'prod', documentType: null },
  EVERYTHING,
  { status: ['completed'], environment: 'prod', documentType: null },
];

/** A feed that begins with its new runs begins an hour before its first start: the history must be older. */
const PAST_MS = 900_000;
const LONG_PAST_MS = 9_000_000;

/** @param begin of the service; some histories want only what was delivered after a moment near the first start */
export function chooseTraits(choices: Choices, begin: number): Traits {
  const live = choices.chance(0.25);
  const pastMs = live ? LONG_PAST_MS : PAST_MS;
  const roughness = choices.pick([0, 0.02, 0.1]);
  // Off in half of the histories: what the sweep finds would hide mistakes of the way before it.
  const sweeping = choices.chance(0.5);
  const clockAheadMs = choices.pick([0, 0, 0, 1_500, 90_000, -3_600_000]);
  const filters = choices.pick(FILTERS);
  const movingCursors = choices.chance(0.5);
  const noCursorAtEnd = choices.chance(0.25);
  const sinceReading = choices.pick(['place', 'filter'] as const);
  return {
    service: {
      movingCursors,
      // Cursors that move as well, or are missing at the end where filters hide something, never show it (guarantee 10).
      boundCursors: choices.chance(0.25) && !movingCursors && (!noCursorAtEnd || filters === EVERYTHING),
      noCursorAtEnd,
      corrections: choices.pick(['ahead', 'behind', 'in place']),
      sinceMeaning: choices.pick(['delivered', 'earlier']),
      // With both, a feed that began with its new runs claims what `since` left out (guarantee 10).
      sinceReading: live && noCursorAtEnd ? 'place' : sinceReading,
      truncatedShare: choices.pick([0, 0.1, 0.5]),
      badShare: choices.pick([0, 0.1]),
      lateShare: choices.pick([0, 0.1]),
      testShare: choices.pick([0, 0.2, 0.8]),
      conflictShare: choices.pick([0, 0.05]),
      scanFactor: choices.pick([1, 2, 100]),
      clockAheadMs,
      sendsDate: clockAheadMs !== 0 || choices.chance(0.5),
      sparseAnswers: choices.chance(0.5),
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
    filters,
    markdown: choices.chance(0.3),
    pageLimit: choices.pick([1, 3, 10]),
    maxHeldPages: choices.between(1, 6),
    // With room for one entry, a page at the end without a cursor is always full, and proves nothing.
    memoryBudget: choices.pick([64 * 1024 * 1024, ...(noCursorAtEnd ? [] : [2_500, 800])]),
    reconcile: {
      intervalMs: sweeping ? 30_000 : null,
      windowMs: 600_000,
      fullIntervalMs: sweeping ? 90_000 : null,
    },
    pastMs,
    starts: startsOf(choices, live, begin + pastMs + clockAheadMs),
    restless: choices.chance(0.3),
  };
}

/** @param now by the service's clock */
function startsOf(choices: Choices, live: boolean, now: number): Traits['starts'] {
  if (live) return ['live'];
  return choices.chance(0.2) ? [new Date(now - choices.between(0, 600_000)), 'beginning', 'now'] : ['beginning'];
}
