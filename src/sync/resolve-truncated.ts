import PQueue from 'p-queue';
import { pauseAfter } from './backoff.js';
import { isStoredInFull, judgeResult, needsFullResult, type ResultVerdict } from './full-result.js';
import { linkedSignal } from './linked-signal.js';
import { type DraftEntry, inPlaceOf, type PageDraft, withPending } from './page-draft.js';
import type { Clock, FeedService, FeedStore, PendingReason, QuarantineEntry, RawRun } from './ports.js';
import { troubleOf } from './trouble.js';

/** Bounds of loading full results (promise 3). */
export const RESULT_LIMITS = {
  /** Tries of one result before its page commits without it. */
  tries: 3,
  /** All tries of one page, milliseconds. */
  pageMs: 20_000,
  /** One result, bytes; a larger one stays pending. */
  bytes: 256 * 1024 * 1024,
} as const;

const RESULT_BACKOFF = { firstMs: 500, maxMs: 5_000 };

/** Who asks: pages of the feed go first, in their order; then pending results; then sweeps. */
export type LoadPriority = 'page' | 'pending' | 'sweep';

/** Loads full results through the single-run endpoint, bounded in number over the whole process. */
export interface ResultLoader {
  /** Loads what a page lacks; entries that could not be completed come back `pending`. Rejects with a `Trouble` of the store. */
  completePage(draft: PageDraft, signal: AbortSignal, priority?: LoadPriority): Promise<ResolvedPage>;
  /** One try for one pending run. Never rejects. */
  loadOnce(run: WantedRun, signal: AbortSignal): Promise<ResultVerdict>;
}

export type WantedRun = Parameters<typeof judgeResult>[0];

export interface ResolvedPage {
  readonly entries: readonly DraftEntry[];
  /** Originals of loaded results whose text was repaired. */
  readonly originals: readonly QuarantineEntry[];
  readonly resolved: number;
  readonly pending: number;
  /** Truncated, but already stored in full, or nothing wanted is missing. */
  readonly skipped: number;
}

export interface ResultLoaderOptions {
  readonly service: FeedService;
  readonly store: Pick<FeedStore, 'findStored'>;
  readonly clock: Clock;
  readonly markdown: boolean;
  readonly concurrency: number;
}

export function createResultLoader({
  service,
  store,
  clock,
  markdown,
  concurrency,
}: ResultLoaderOptions): ResultLoader {
  const queue = new PQueue({ concurrency });
  let pages = 0;
  let quietUntil = Number.NEGATIVE_INFINITY;

  const request = async (run: WantedRun, signal: AbortSignal, onStarted: () => void): Promise<RawRun> => {
    onStarted();
    // One Retry-After is meant for all requests.
    if (clock.monotonic() < quietUntil) await clock.sleep(quietUntil - clock.monotonic(), signal);
    signal.throwIfAborted();
    return service.readRun(run.scanId, { markdown, maxBytes: RESULT_LIMITS.bytes }, signal);
  };

  const tryOnce = async (run: WantedRun, turn: Turn): Promise<ResultVerdict> => {
    const { signal, priority, onStarted } = turn;
    try {
      const answer = await queue.add(() => request(run, signal, onStarted), { signal, priority });
      return judgeResult(run, answer, markdown);
    } catch (error) {
      const { kind, retryAfterMs } = troubleOf(error);
      if (retryAfterMs !== undefined) {
        quietUntil = Math.max(quietUntil, clock.monotonic() + Math.min(retryAfterMs, RESULT_LIMITS.pageMs));
      }
      return { kind: 'pending', reason: reasonOf(kind) };
    }
  };

  const loadPatiently = async (run: WantedRun, turn: Turn): Promise<ResultVerdict> => {
    const { signal } = turn;
    for (let tries = 1; ; tries += 1) {
      const verdict = await tryOnce(run, turn);
      const final = verdict.kind !== 'pending' || verdict.reason === 'too_large' || tries === RESULT_LIMITS.tries;
      if (final || signal.aborted) return verdict;
      await clock.sleep(pauseAfter(tries, { remedy: 'retry' }, clock.random(), RESULT_BACKOFF), signal);
      if (signal.aborted) return verdict;
    }
  };

  const loadOnce = (run: WantedRun, signal: AbortSignal) =>
    tryOnce(run, { signal, priority: PRIORITY.pending, onStarted: () => {} });

  const notStoredYet = async (entries: readonly DraftEntry[]): Promise<readonly DraftEntry[]> => {
    if (entries.length === 0) return [];
    const stored = await store.findStored(entries.map((entry) => entry.accepted.run.scanId));
    const known = new Map(stored.map((result) => [result.scanId, result]));
    return entries.filter(({ accepted: { run } }) => !isStoredInFull(run, known.get(run.scanId), markdown));
  };

  const completePage: ResultLoader['completePage'] = async (draft, signal, priority = 'page') => {
    const truncated = draft.entries.filter((entry) => entry.accepted.run.truncated);
    if (truncated.length === 0) return { entries: draft.entries, originals: [], resolved: 0, pending: 0, skipped: 0 };
    pages += 1;
    const place = priority === 'page' ? -pages : PRIORITY[priority];
    const lacking = new Set(truncated.filter((entry) => needsFullResult(entry.accepted.run, markdown)));
    const wanted = await notStoredYet([...lacking]);
    const verdicts = await withinTime(clock, RESULT_LIMITS.pageMs, signal, (until, onStarted) =>
      Promise.all(
        wanted.map(({ accepted }) => loadPatiently(accepted.run, { signal: until, priority: place, onStarted })),
      ),
    );
    signal.throwIfAborted();
    const verdictOf = new Map(wanted.map((entry, index) => [entry, verdicts[index]]));
    const pending = verdicts.filter((verdict) => verdict.kind === 'pending').length;
    const loaded = verdicts.flatMap((verdict) => (verdict.kind === 'loaded' ? [verdict.draft.original] : []));
    return {
      originals: loaded.filter((original) => original !== null),
      entries: draft.entries.map((entry) => applied(entry, verdictOf.get(entry), lacking.has(entry))),
      resolved: verdicts.length - pending,
      pending,
      skipped: truncated.length - verdicts.length,
    };
  };

  return { completePage, loadOnce };
}

/** In the queue the higher number goes first; pages of the feed have -1, -2, … in their order. */
const PRIORITY = { pending: -1e12, sweep: -2e12 } as const;

/** One run's place among those to be loaded. */
interface Turn {
  readonly signal: AbortSignal;
  readonly priority: number;
  readonly onStarted: () => void;
}

/** What is committed for an entry. One that is stored in full already goes as pending: it changes nothing there. */
function applied(entry: DraftEntry, verdict: ResultVerdict | undefined, lacking: boolean): DraftEntry {
  if (!lacking) return entry;
  if (verdict === undefined) return withPending(entry, 'not_loaded');
  return verdict.kind === 'loaded' ? inPlaceOf(entry, verdict.draft) : withPending(entry, verdict.reason);
}

function reasonOf(kind: string): PendingReason {
  if (kind === 'http_404') return 'not_found';
  if (kind === 'too_large') return 'too_large';
  return 'not_loaded';
}

/**
 * Runs `work` with a signal that also aborts `ms` after the work's first request has its turn: while others are being
 * served no time passes. No timer outlives the work.
 */
async function withinTime<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (until: AbortSignal, onStarted: () => void) => Promise<T>,
): Promise<T> {
  const until = linkedSignal(signal);
  const done = linkedSignal(signal);
  let started = false;
  const onStarted = () => {
    if (started) return;
    started = true;
    void clock.sleep(ms, done.signal).then(until.abort);
  };
  try {
    return await work(until.signal, onStarted);
  } finally {
    done.abort();
    done.unlink();
    until.unlink();
  }
}
