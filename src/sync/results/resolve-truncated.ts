import type { Clock } from '../../core/clock.js';
import type { MemoryBudget, MemoryTicket, Priority, Reservation } from '../memory/memory-budget.js';
import { type CheckedEntry, type CheckedPage, type Loading, withPending } from '../page/check-page.js';
import { LARGEST_ENTRY_BYTES, LARGEST_PAGE_BYTES } from '../page/page-limit.js';
import type { FeedStore, PendingReason } from '../ports/index.js';
import { pauseAfter } from '../retry/backoff.js';
import { withTimeout } from '../waiting/with-timeout.js';
import { isStoredInFull, needsFullResult, type ResultVerdict } from './full-result.js';
import {
  createLoadResult,
  type LoadOptions,
  type LoadOutcome,
  type LoadSettings,
  type Postponed,
  type WantedRun,
} from './load-result.js';

/** Bounds of loading full results (promise 3). */
export const RESULT_LIMITS = {
  /** Maximum number of attempts for one result before its page is committed without it. */
  tries: 3,
  /** Maximum duration of all attempts for one page, milliseconds. */
  pageMs: 20_000,
  /** Maximum size of all results that are committed with one page, bytes: they are part of its statement. */
  pageBytes: LARGEST_PAGE_BYTES,
} as const;

const DAY_MS = 24 * 3_600_000;
/** Maximum difference of this clock and the database's with which every result to be stored is loaded, milliseconds. */
const MAX_CLOCK_DIFFERENCE_MS = 3_600_000;

const RESULT_BACKOFF = { firstMs: 500, maxMs: 5_000 };

/** Loads full results through the single-run endpoint, within the feed's limit of requests and the process's limit of memory. */
export interface ResultLoader {
  /**
   * Loads the truncated results of a page. Returns its entries; those whose result could not be loaded are `pending`, with
   * the reason `no_memory` if only memory was lacking. Rejects with a `Failure` of the store.
   * @param ticket of the page, for the memory of the results
   */
  completePage(page: CheckedPage, ticket: MemoryTicket, signal: AbortSignal): Promise<readonly CheckedEntry[]>;
  /** Makes one attempt to load a pending result. Never rejects. A loaded result stays reserved until it is released. */
  loadOnce(
    run: WantedRun,
    signal: AbortSignal,
    priority?: Extract<Priority, 'deferred' | 'pending'>,
  ): Promise<(Exclude<ResultVerdict, { kind: 'pending' }> | Postponed) & { release(): void }>;
}

export interface ResultLoaderOptions extends LoadSettings {
  readonly clock: Clock;
  readonly store: Pick<FeedStore, 'findStored'>;
  readonly budget: MemoryBudget;
  /** Maximum age of stored runs, days since their delivery (SCANFEED_RETENTION_DAYS); null: unlimited. */
  readonly keptDays: number | null;
}

export function createResultLoader(options: ResultLoaderOptions): ResultLoader {
  const { store, clock, budget, markdown, keptDays } = options;
  const loadResult = createLoadResult(options);

  const loadWithRetries = async (run: WantedRun, options: LoadOptions): Promise<LoadOutcome> => {
    const { signal } = options;
    for (let tries = 1; ; tries += 1) {
      const outcome = await loadResult(run, options);
      if (outcome.kind === 'does_not_fit') return signal.aborted ? NOT_LOADED : outcome;
      if (outcome.kind === 'loaded' || outcome.reason === 'too_large' || tries === RESULT_LIMITS.tries) return outcome;
      const pauseMs = pauseAfter(tries, { ...outcome, action: 'retry' }, clock.random(), RESULT_BACKOFF);
      if (pauseMs > RESULT_LIMITS.pageMs || signal.aborted) return outcome;
      await clock.sleep(pauseMs, signal);
      if (signal.aborted) return outcome;
    }
  };

  const loadAll = async (wanted: readonly CheckedEntry[], ticket: MemoryTicket, signal: AbortSignal) => {
    let outOfMemory = false; // then no further result is requested
    let bytesLeft: number = RESULT_LIMITS.pageBytes;
    const reserve = (until: AbortSignal) => {
      const reservation = outOfMemory ? null : ticket.tryReserve(0, 'result', until);
      outOfMemory ||= reservation === null;
      return reservation;
    };
    const fitIntoPage = (outcome: LoadOutcome): LoadOutcome => {
      if (outcome.kind !== 'loaded') return outcome;
      const { bytes } = outcome.reservation;
      if (bytes > bytesLeft) {
        outcome.reservation.release();
        return { kind: 'does_not_fit', bytes };
      }
      bytesLeft -= bytes;
      return outcome;
    };
    return withTimeout(clock, RESULT_LIMITS.pageMs, signal, (until, startTimer) => {
      const loadOptions = {
        signal: until,
        priority: -ticket.rank,
        reserve: () => reserve(until),
        maxBytes: RESULT_LIMITS.pageBytes,
        onRequest: startTimer,
      };
      return Promise.all(
        wanted.map(async (entry) => {
          const outcome = await loadWithRetries(entry.accepted.run, loadOptions);
          outOfMemory ||= outcome.kind === 'does_not_fit' && outcome.bytes > 0; // it was preempted
          return [entry, fitIntoPage(outcome)] as const;
        }),
      );
    });
  };

  const notStoredYet = async (entries: readonly CheckedEntry[]): Promise<readonly CheckedEntry[]> => {
    if (entries.length === 0) return [];
    const stored = await store.findStored(entries.map((entry) => entry.accepted.run.scanId));
    const known = new Map(stored.map((result) => [result.scanId, result]));
    return entries.filter(({ accepted: { run } }) => !isStoredInFull(run, known.get(run.scanId), markdown));
  };

  /** Returns whether an entry is past the retention. The database decides whether it is stored, and its clock may differ. */
  const isExpired = ({ accepted: { run } }: CheckedEntry): boolean => {
    if (keptDays === null || run.deliveredAt === null) return false;
    return clock.now() - run.deliveredAt.getTime() > keptDays * DAY_MS + MAX_CLOCK_DIFFERENCE_MS;
  };

  const completePage: ResultLoader['completePage'] = async ({ entries }, ticket, signal) => {
    const lacking = new Set(entries.filter((entry) => needsFullResult(entry.accepted.run, markdown)));
    const wanted = await notStoredYet([...lacking].filter((entry) => !isExpired(entry)));
    const outcomes = new Map(wanted.length === 0 ? [] : await loadAll(wanted, ticket, signal));
    signal.throwIfAborted();
    return entries.map((entry) => {
      const outcome = outcomes.get(entry);
      if (outcome !== undefined) return withResult(entry, outcome);
      if (!entry.accepted.run.truncated) return entry;
      // Committed as pending, which does not change a row that is already stored in full, and stores no expired run.
      return withLoading('skipped', lacking.has(entry) ? withPending(entry, 'not_loaded') : entry);
    });
  };

  const loadOnce: ResultLoader['loadOnce'] = async (run, signal, priority = 'pending') => {
    const ticket = budget.enqueue(priority);
    const release = () => ticket.close();
    for (let bytes = 0; ; ) {
      // Waits for memory before it waits for a free request: downloads that will release memory may need that request.
      const reservation: Reservation | null = await ticket.reserve(bytes, 'result', signal).catch(() => null);
      if (reservation === null) return { ...NOT_LOADED, release };
      const outcome = await loadResult(run, {
        signal,
        priority: -ticket.rank,
        reserve: () => reservation,
        maxBytes: LARGEST_ENTRY_BYTES,
        onRequest: () => {},
      });
      if (outcome.kind !== 'does_not_fit') {
        if (outcome.kind === 'pending') release();
        return { ...outcome, release };
      }
      bytes = outcome.bytes;
    }
  };

  return { completePage, loadOnce };
}

const NOT_LOADED = { kind: 'pending', reason: 'not_loaded' } as const;

function withResult(entry: CheckedEntry, outcome: LoadOutcome): CheckedEntry {
  if (outcome.kind === 'does_not_fit') return pendingEntry(entry, 'no_memory');
  if (outcome.kind === 'pending') return pendingEntry(entry, outcome.reason);
  return withLoading('resolved', { ...outcome.entry, fallback: pendingEntry(entry, 'invalid_result') });
}

function pendingEntry(entry: CheckedEntry, reason: PendingReason): CheckedEntry {
  return withLoading('pending', withPending(entry, reason));
}

function withLoading(loading: Loading, entry: CheckedEntry): CheckedEntry {
  return { ...entry, loading };
}
