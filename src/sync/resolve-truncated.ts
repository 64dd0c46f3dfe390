import { pauseAfter } from './backoff.js';
import type { ByteBudget, Holding, Room } from './byte-budget.js';
import { isStoredInFull, needsFullResult, type ResultVerdict } from './full-result.js';
import { createTries, type Tried, type TryOptions, type Turn, type WantedRun } from './load-result.js';
import { type DraftEntry, type Loading, type PageDraft, withPending } from './page-draft.js';
import type { FeedStore, PendingReason } from './ports.js';
import { withinTime } from './within-time.js';

/** Bounds of loading full results (promise 3). */
export const RESULT_LIMITS = {
  /** Tries of one result before its page commits without it. */
  tries: 3,
  /** All tries of one page, milliseconds. */
  pageMs: 20_000,
} as const;

const RESULT_BACKOFF = { firstMs: 500, maxMs: 5_000 };

/** Loads full results through the single-run endpoint, bounded in number and bytes over the whole process. */
export interface ResultLoader {
  /**
   * Loads what a page lacks, as much of it as there is room for; entries that could not be completed come back `pending`.
   * Rejects with a `Trouble` of the store.
   * @param room the page's
   */
  completePage(draft: PageDraft, room: Room, signal: AbortSignal): Promise<ResolvedPart>;
  /** One try for one pending run. Never rejects. What it loaded is held until it is released. */
  loadOnce(run: WantedRun, signal: AbortSignal): Promise<ResultVerdict & { release(): void }>;
}

/** Entries of a page that can be committed. */
export interface ResolvedPart {
  readonly entries: readonly DraftEntry[];
  /** Once they are committed: forgets them and gives back the bytes of their results. */
  release(): void;
  /** To be called after that: loads those for which there was no room. Null where this was all of the page. */
  readonly rest: ((signal: AbortSignal) => Promise<ResolvedPart>) | null;
}

export interface ResultLoaderOptions extends TryOptions {
  readonly store: Pick<FeedStore, 'findStored'>;
  readonly budget: ByteBudget;
}

/** How an entry stands with its result. */
interface Standing {
  /** Tries so far. */
  readonly tries: number;
  /** Bytes that it is known to need; 0 where nothing is known. */
  readonly bytes: number;
}

/** What is left to do of a page. */
interface Work {
  readonly entries: readonly DraftEntry[];
  /** Those among them whose result is to be loaded. */
  readonly wanted: ReadonlyMap<DraftEntry, Standing>;
  /** Left of the page's time. */
  readonly ms: number;
  readonly room: Room;
}

export function createResultLoader(options: ResultLoaderOptions): ResultLoader {
  const { store, clock, budget, markdown } = options;
  const tryResult = createTries(options);

  const loadPatiently = async (run: WantedRun, from: Standing, turn: Turn): Promise<Tried & { tries: number }> => {
    const { signal } = turn;
    for (let { tries } = from; ; tries += 1) {
      const tried = await tryResult(run, from.bytes, turn);
      if (tried.kind === 'no_room') return signal.aborted ? { ...NOT_LOADED, tries } : { ...tried, tries };
      const last = tried.kind === 'loaded' || tried.reason === 'too_large' || tries + 1 === RESULT_LIMITS.tries;
      if (last || signal.aborted) return { ...tried, tries };
      await clock.sleep(pauseAfter(tries + 1, { remedy: 'retry' }, clock.random(), RESULT_BACKOFF), signal);
      if (signal.aborted) return { ...tried, tries };
    }
  };

  const load = async (work: Work, signal: AbortSignal): Promise<ResolvedPart> => {
    const { wanted, ms, room } = work;
    if (wanted.size === 0) return sortedOut(work, new Map(), load); // as with most pages
    let full = false; // what is loaded already is to be committed first
    const hold = (bytes: number, until: AbortSignal) => {
      const holding = full ? null : room.tryHold(bytes, 'result', until);
      full ||= holding === null;
      return holding;
    };
    const { done, spentMs } = await withinTime(clock, ms, signal, (until, onStarted) => {
      const turn = { signal: until, priority: -room.rank, hold: (bytes: number) => hold(bytes, until), onStarted };
      return Promise.all(
        [...wanted].map(async ([entry, standing]) => {
          const tried = await loadPatiently(entry.accepted.run, standing, turn);
          full ||= tried.kind === 'no_room';
          return [entry, tried] as const;
        }),
      );
    });
    signal.throwIfAborted();
    return sortedOut({ ...work, ms: ms - spentMs }, new Map(done), load);
  };

  const notStoredYet = async (entries: readonly DraftEntry[]): Promise<readonly DraftEntry[]> => {
    if (entries.length === 0) return [];
    const stored = await store.findStored(entries.map((entry) => entry.accepted.run.scanId));
    const known = new Map(stored.map((result) => [result.scanId, result]));
    return entries.filter(({ accepted: { run } }) => !isStoredInFull(run, known.get(run.scanId), markdown));
  };

  const completePage: ResultLoader['completePage'] = async (draft, room, signal) => {
    const lacking = draft.entries.filter((entry) => needsFullResult(entry.accepted.run, markdown));
    const wanted = new Set(await notStoredYet(lacking));
    const stored = new Set(lacking.filter((entry) => !wanted.has(entry)));
    const entries = draft.entries.map((entry) => {
      if (!entry.accepted.run.truncated || wanted.has(entry)) return entry;
      // One that is stored in full already goes as pending: it changes nothing there.
      return became('skipped', stored.has(entry) ? withPending(entry, 'not_loaded') : entry);
    });
    const nothingTried: Standing = { tries: 0, bytes: 0 };
    const standings = new Map([...wanted].map((entry) => [entry, nothingTried]));
    return load({ entries, wanted: standings, ms: RESULT_LIMITS.pageMs, room }, signal);
  };

  const loadOnce: ResultLoader['loadOnce'] = async (run, signal) => {
    const room = budget.open('pending');
    const release = () => room.close();
    for (let bytes = 0; ; ) {
      // Waits outside the queue: what it waits for may need a place in it.
      const holding = await room.hold(bytes, 'result', signal).catch(() => null);
      if (holding === null) return { ...NOT_LOADED, release };
      const turn = { signal, priority: -room.rank, hold: () => holding, onStarted: () => {} };
      const tried = await tryResult(run, bytes, turn);
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

/** What can be committed of the page now, and what is left to be loaded. */
function sortedOut(
  { entries, ms, room }: Work,
  tried: ReadonlyMap<DraftEntry, Tried & Pick<Standing, 'tries'>>,
  load: (work: Work, signal: AbortSignal) => Promise<ResolvedPart>,
): ResolvedPart {
  const ready: DraftEntry[] = [];
  const left = new Map<DraftEntry, Standing>();
  const holdings: Holding[] = [];
  for (const entry of entries) {
    const result = tried.get(entry);
    if (result === undefined) ready.push(entry);
    else if (result.kind === 'no_room') left.set(entry, result);
    else if (result.kind === 'pending') ready.push(pendingEntry(entry, result.reason));
    else {
      ready.push(became('resolved', { ...result.draft, fallback: pendingEntry(entry, 'invalid_result') }));
      holdings.push(result.holding);
    }
  }
  const sizes = holdings.map(({ bytes }) => bytes);
  return {
    entries: ready,
    release: releaseAll(ready, holdings),
    rest: left.size === 0 ? null : restOf({ entries: [...left.keys()], wanted: guessed(left, sizes), ms, room }, load),
  };
}

/** By itself, so that it keeps nothing else alive. */
function releaseAll(entries: DraftEntry[], holdings: readonly Holding[]): () => void {
  return () => {
    entries.length = 0;
    for (const holding of holdings) holding.release();
  };
}

/** By itself, so that it keeps nothing alive of what was loaded before. It waits until there is room for one result. */
function restOf(work: Work, load: (work: Work, signal: AbortSignal) => Promise<ResolvedPart>) {
  const [first] = work.wanted.values();
  return async (signal: AbortSignal) => {
    const holding = await work.room.hold(first?.bytes ?? 0, 'result', signal);
    holding.release();
    return load(work, signal);
  };
}

/** Results whose size is not known are taken to be like the others of the page. */
function guessed(
  standings: ReadonlyMap<DraftEntry, Standing>,
  loaded: readonly number[],
): ReadonlyMap<DraftEntry, Standing> {
  const known = [...loaded, ...[...standings.values()].flatMap(({ bytes }) => (bytes > 0 ? [bytes] : []))];
  const mean = known.reduce((sum, bytes) => sum + bytes, 0) / Math.max(1, known.length);
  return new Map([...standings].map(([entry, { tries, bytes }]) => [entry, { tries, bytes: bytes || mean }]));
}

function pendingEntry(entry: DraftEntry, reason: PendingReason): DraftEntry {
  return became('pending', withPending(entry, reason));
}

function became(loading: Loading, entry: DraftEntry): DraftEntry {
  return { ...entry, loading };
}
