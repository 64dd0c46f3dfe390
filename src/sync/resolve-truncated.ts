import { pauseAfter } from './backoff.js';
import type { ByteBudget, Holding, Line, Room } from './byte-budget.js';
import { isStoredInFull, needsFullResult, type ResultVerdict } from './full-result.js';
import { createTries, type Tried, type TryOptions, type Turn, type WantedRun } from './load-result.js';
import { type DraftEntry, type Loading, type PageDraft, withPending } from './page-draft.js';
import { LARGEST_ENTRY_BYTES, LARGEST_PAGE_BYTES } from './page-limit.js';
import type { FeedStore, PendingReason } from './ports.js';
import { withinTime } from './within-time.js';

/** Bounds of loading full results (promise 3). */
export const RESULT_LIMITS = {
  /** Tries of one result before its page commits without it. */
  tries: 3,
  /** All tries of one page, milliseconds. */
  pageMs: 20_000,
  /** All results that are committed with one page: they are part of its statement. */
  pageBytes: LARGEST_PAGE_BYTES,
} as const;

const RESULT_BACKOFF = { firstMs: 500, maxMs: 5_000 };

/** Loads full results through the single-run endpoint, bounded in number and bytes over the whole process. */
export interface ResultLoader {
  /**
   * Loads what a page lacks. Returns its entries, those whose result could not be loaded as `pending`: with the reason
   * `no_memory` where there was only no room for it.
   * Rejects with a `Trouble` of the store.
   * @param room the page's, which holds the results
   */
  completePage(draft: PageDraft, room: Room, signal: AbortSignal): Promise<readonly DraftEntry[]>;
  /** One try for one pending run. Never rejects. What it loaded is held until it is released. */
  loadOnce(
    run: WantedRun,
    signal: AbortSignal,
    line?: Extract<Line, 'deferred' | 'pending'>,
  ): Promise<ResultVerdict & { release(): void }>;
}

export interface ResultLoaderOptions extends TryOptions {
  readonly store: Pick<FeedStore, 'findStored'>;
  readonly budget: ByteBudget;
}

export function createResultLoader(options: ResultLoaderOptions): ResultLoader {
  const { store, clock, budget, markdown } = options;
  const tryResult = createTries(options);

  const loadPatiently = async (run: WantedRun, turn: Turn): Promise<Tried> => {
    const { signal } = turn;
    for (let tries = 1; ; tries += 1) {
      const tried = await tryResult(run, turn);
      if (tried.kind === 'no_room') return signal.aborted ? NOT_LOADED : tried;
      const last = tried.kind === 'loaded' || tried.reason === 'too_large' || tries === RESULT_LIMITS.tries;
      if (last || signal.aborted) return tried;
      await clock.sleep(pauseAfter(tries, { remedy: 'retry' }, clock.random(), RESULT_BACKOFF), signal);
      if (signal.aborted) return tried;
    }
  };

  const loadAll = async (wanted: readonly DraftEntry[], room: Room, signal: AbortSignal) => {
    let full = false; // the budget is used up: no other result is begun
    let left: number = RESULT_LIMITS.pageBytes;
    const hold = (until: AbortSignal) => {
      const holding = full ? null : room.tryHold(0, 'result', until);
      full ||= holding === null;
      return holding;
    };
    const fitting = (tried: Tried): Tried => {
      if (tried.kind !== 'loaded') return tried;
      const { bytes } = tried.holding;
      if (bytes > left) {
        tried.holding.release();
        return { kind: 'no_room', bytes };
      }
      left -= bytes;
      return tried;
    };
    return withinTime(clock, RESULT_LIMITS.pageMs, signal, (until, onStarted) => {
      const turn = { signal: until, priority: -room.rank, maxBytes: RESULT_LIMITS.pageBytes, onStarted };
      return Promise.all(
        wanted.map(async (entry) => {
          const tried = await loadPatiently(entry.accepted.run, { ...turn, hold: () => hold(until) });
          full ||= tried.kind === 'no_room' && tried.bytes > 0; // it had to give way
          return [entry, fitting(tried)] as const;
        }),
      );
    });
  };

  const notStoredYet = async (entries: readonly DraftEntry[]): Promise<readonly DraftEntry[]> => {
    if (entries.length === 0) return [];
    const stored = await store.findStored(entries.map((entry) => entry.accepted.run.scanId));
    const known = new Map(stored.map((result) => [result.scanId, result]));
    return entries.filter(({ accepted: { run } }) => !isStoredInFull(run, known.get(run.scanId), markdown));
  };

  const completePage: ResultLoader['completePage'] = async ({ entries }, room, signal) => {
    const lacking = new Set(entries.filter((entry) => needsFullResult(entry.accepted.run, markdown)));
    const wanted = await notStoredYet([...lacking]);
    const tried = new Map(wanted.length === 0 ? [] : await loadAll(wanted, room, signal));
    signal.throwIfAborted();
    return entries.map((entry) => {
      const result = tried.get(entry);
      if (result !== undefined) return withResult(entry, result);
      if (!entry.accepted.run.truncated) return entry;
      // One that is stored in full already goes as pending: it changes nothing there.
      return became('skipped', lacking.has(entry) ? withPending(entry, 'not_loaded') : entry);
    });
  };

  const loadOnce: ResultLoader['loadOnce'] = async (run, signal, line = 'pending') => {
    const room = budget.open(line);
    const release = () => room.close();
    for (let bytes = 0; ; ) {
      // Waits outside the queue: what it waits for may need a place in it.
      const holding: Holding | null = await room.hold(bytes, 'result', signal).catch(() => null);
      if (holding === null) return { ...NOT_LOADED, release };
      const turn = {
        signal,
        priority: -room.rank,
        hold: () => holding,
        maxBytes: LARGEST_ENTRY_BYTES,
        onStarted: () => {},
      };
      const tried = await tryResult(run, turn);
      if (tried.kind !== 'no_room') {
        if (tried.kind === 'pending') release();
        return { ...tried, release };
      }
      bytes = tried.bytes;
    }
  };

  return { completePage, loadOnce };
}

const NOT_LOADED = { kind: 'pending', reason: 'not_loaded' } as const;

function withResult(entry: DraftEntry, tried: Tried): DraftEntry {
  if (tried.kind === 'no_room') return pendingEntry(entry, 'no_memory');
  if (tried.kind === 'pending') return pendingEntry(entry, tried.reason);
  return became('resolved', { ...tried.draft, fallback: pendingEntry(entry, 'invalid_result') });
}

function pendingEntry(entry: DraftEntry, reason: PendingReason): DraftEntry {
  return became('pending', withPending(entry, reason));
}

function became(loading: Loading, entry: DraftEntry): DraftEntry {
  return { ...entry, loading };
}
