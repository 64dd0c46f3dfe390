import type { Clock } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import type { MemoryBudget, MemoryTicket, Reservation } from '../memory/memory-budget.js';
import { type CheckedEntry, type Loading, withPending } from '../page/check-entries.js';
import { LARGEST_ENTRY_BYTES, LARGEST_PAGE_BYTES } from '../page/page-limit.js';
import type { FeedService, PendingReason, PendingStore } from '../ports/index.js';
import { pauseAfter } from '../retry/backoff.js';
import { limitConcurrency } from '../waiting/limit-concurrency.js';
import { withTimeout } from '../waiting/with-timeout.js';
import { isStoredInFull, judgeResult, needsFullResult, type ResultVerdict } from './full-result.js';

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

/** Minimum size to reserve for a result, of the budget: 1 MiB. It limits how many are requested at once. */
const LEAST_SHARE = 1 / 64;

const RESULT_BACKOFF = { firstMs: 500, maxMs: 5_000 };

/** Number of latest results whose sizes are remembered. */
const REMEMBERED = 8;

type WantedRun = Parameters<typeof judgeResult>[0];

export type ResultLoader = ReturnType<typeof createResultLoader>;

export interface ResultLoaderOptions {
  readonly service: FeedService;
  readonly markdown: boolean;
  readonly clock: Clock;
  /** Maximum number of requests at once for the results of pages, and for pending results. */
  readonly concurrency: number;
  readonly store: PendingStore;
  readonly budget: MemoryBudget;
  /** Maximum age of stored runs, days since their delivery (SCANFEED_RETENTION_DAYS); null: unlimited. */
  readonly keptDays: number | null;
}

/** Loads full results through the single-run endpoint, within the feed's limit of requests and the process's limit of memory. */
export function createResultLoader(options: ResultLoaderOptions) {
  const { service, store, clock, budget, markdown, keptDays, concurrency } = options;
  /** Sizes of the feed's latest results, by which memory is reserved for the next ones, bytes. */
  const sizes: number[] = [];
  const addSize = (bytes: number) => {
    sizes.push(bytes);
    if (sizes.length > REMEMBERED) sizes.shift();
  };
  const halfBudget = budget.bytes / 2;
  const expectedBytes = (unknown: number) =>
    Math.max(LEAST_SHARE * budget.bytes, ...(sizes.length === 0 ? [unknown] : sizes));
  // Two limits: a pending result may wait for the memory of a page, whose results must not wait for it.
  const limitOfPages = limitConcurrency(concurrency);
  const limitPending = limitConcurrency(concurrency);
  /** Resolves after the first load, without its result, which would stay in memory as long as the loader. */
  let first: Promise<void> | null = null;

  /**
   * Makes one attempt to load a result. Never rejects. The memory of a loaded one stays reserved until its ticket is closed.
   * @param maxBytes maximum size of the result, bytes
   */
  const loadResult = async (
    run: WantedRun,
    reservation: Reservation,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<ResultVerdict> => {
    const expected = reservation.bytes;
    try {
      signal.throwIfAborted();
      const bounds = { maxBytes, expectedBytes: Math.max(0, ...sizes), reserve: reservation.resize };
      const answer = await service.readRun(run.scanId, { markdown, ...bounds }, signal);
      signal.throwIfAborted();
      const { length } = answer.body;
      addSize(length);
      const verdict = judgeResult(run, answer, markdown);
      if (verdict.kind === 'loaded') void reservation.resize(length);
      else reservation.release();
      return verdict;
    } catch (error) {
      const { bytes, isRefused } = reservation;
      reservation.release();
      const { kind, action, retryAfterMs } = classifyError(error);
      if (isRefused || (kind === 'too_large' && maxBytes < LARGEST_ENTRY_BYTES)) {
        addSize(halfBudget);
        return NO_MEMORY;
      }
      if (bytes > expected) addSize(bytes);
      return { kind: 'pending', reason: reasonOf(kind), error, ...(action !== 'hold' && { retryAfterMs }) };
    }
  };

  /** Loads the first result of the feed alone, which shows how large they may be. */
  const afterFirst = async (load: () => Promise<ResultVerdict>): Promise<ResultVerdict> => {
    if (first !== null) {
      await first;
      return load();
    }
    const loading = load();
    const ended = () => {};
    first = loading.then(ended, ended);
    return loading;
  };

  const withRetries = async (signal: AbortSignal, load: () => Promise<ResultVerdict>): Promise<ResultVerdict> => {
    for (let tries = 1; ; tries += 1) {
      const outcome = await load();
      if (outcome === NO_MEMORY) return signal.aborted ? NOT_LOADED : outcome;
      if (outcome.kind === 'loaded' || outcome.reason === 'too_large' || tries === RESULT_LIMITS.tries) return outcome;
      const pauseMs = pauseAfter(tries, { ...outcome, action: 'retry' }, clock.random(), RESULT_BACKOFF);
      if (pauseMs > RESULT_LIMITS.pageMs || signal.aborted) return outcome;
      await clock.sleep(pauseMs, signal);
      if (signal.aborted) return outcome;
    }
  };

  const loadAll = (wanted: readonly CheckedEntry[], ticket: MemoryTicket, signal: AbortSignal) =>
    withTimeout(clock, RESULT_LIMITS.pageMs, signal, (until, startTimer) => {
      let outOfMemory = false; // then no further result is requested
      const attempt = async (run: WantedRun): Promise<ResultVerdict> => {
        const reservation = outOfMemory ? null : ticket.tryReserve(expectedBytes(0), RESULT_LIMITS.pageBytes);
        if (reservation !== null) startTimer();
        const outcome = await (reservation === null
          ? NO_MEMORY
          : loadResult(run, reservation, RESULT_LIMITS.pageBytes, until));
        outOfMemory ||= outcome === NO_MEMORY;
        return outcome;
      };
      const load = (run: WantedRun) =>
        limitOfPages(() => afterFirst(() => attempt(run)), { signal: until, priority: -ticket.rank }).catch(notLoaded);
      return Promise.all(
        wanted.map(async (entry) => [entry, await withRetries(until, () => load(entry.accepted.run))] as const),
      );
    });

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

  /**
   * Loads the truncated results of the entries of a page. Returns the entries; those whose result could not be loaded are `pending`,
   * with the reason `no_memory` if only memory was lacking. Rejects with a `Failure` of the store.
   * @param ticket of the page, for the memory of the results
   */
  const loadResults = async (
    entries: readonly CheckedEntry[],
    ticket: MemoryTicket,
    signal: AbortSignal,
  ): Promise<readonly CheckedEntry[]> => {
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

  /** Makes one attempt to load a pending result. Never rejects. A loaded result stays reserved until it is released. */
  const loadOnce = async (run: WantedRun, signal: AbortSignal): Promise<ResultVerdict & { release(): void }> => {
    const ticket = budget.enqueue('background');
    const load = async () => {
      const reservation = await ticket.reserve(expectedBytes(halfBudget), signal);
      return loadResult(run, reservation, LARGEST_ENTRY_BYTES, signal);
    };
    const verdict = await limitPending(load, { signal }).catch(notLoaded);
    return { ...verdict, release: () => ticket.close() };
  };

  return { loadResults, loadOnce };
}

const NOT_LOADED: ResultVerdict = { kind: 'pending', reason: 'not_loaded' };
/** The result does not fit into memory with the other results of its page. The attempt does not count. */
const NO_MEMORY: ResultVerdict = { kind: 'pending', reason: 'no_memory' };

function reasonOf(kind: string): PendingReason {
  if (kind === 'http_404') return 'not_found';
  if (kind === 'too_large' || kind === 'too_many_values') return 'too_large';
  return 'not_loaded';
}

/** The outcome of a load that the signal aborted while it waited for others or for memory. */
const notLoaded = () => NOT_LOADED;

function withResult(entry: CheckedEntry, outcome: ResultVerdict): CheckedEntry {
  if (outcome.kind === 'pending') return withLoading('pending', withPending(entry, outcome.reason));
  return withLoading('resolved', { ...withPending(entry, 'invalid_result'), result: outcome.entry });
}

function withLoading(loading: Loading, entry: CheckedEntry): CheckedEntry {
  return { ...entry, loading };
}
