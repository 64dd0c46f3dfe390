import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import { pauseAfter } from './backoff.js';
import { isStoredInFull, judgeResult, needsFullResult, type ResultVerdict } from './full-result.js';
import { type DraftEntry, inPlaceOf, type PageDraft, withPending } from './page-draft.js';
import type { Clock, FeedService, FeedStore, PendingReason } from './ports.js';
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

/** Loads full results through the single-run endpoint, bounded in number over the whole process. */
export interface ResultLoader {
  /** Loads what a page lacks; entries that could not be completed come back `pending`. Rejects only when aborted. */
  completePage(draft: PageDraft, signal: AbortSignal): Promise<ResolvedPage>;
  /** One try for one run. Never rejects. */
  loadOnce(run: WantedRun, signal: AbortSignal): Promise<ResultVerdict>;
}

export type WantedRun = Parameters<typeof judgeResult>[0];

export interface ResolvedPage {
  readonly entries: readonly DraftEntry[];
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

  const loadOnce = async (run: WantedRun, signal: AbortSignal) => (await tryOnce(run, signal)).verdict;

  const tryOnce = async (run: WantedRun, signal: AbortSignal): Promise<Attempt> => {
    try {
      const options = { markdown, maxBytes: RESULT_LIMITS.bytes };
      const answer = await queue.add(() => service.readRun(run.scanId, options, signal), { signal });
      return { verdict: judgeResult(run, answer, markdown), retryAfterMs: undefined };
    } catch (error) {
      const { kind, retryAfterMs } = troubleOf(error);
      return { verdict: { kind: 'pending', reason: reasonOf(kind) }, retryAfterMs };
    }
  };

  const loadPatiently = async (run: WantedRun, signal: AbortSignal): Promise<ResultVerdict> => {
    for (let tries = 1; ; tries += 1) {
      const { verdict, retryAfterMs } = await tryOnce(run, signal);
      const final = verdict.kind !== 'pending' || verdict.reason === 'too_large' || tries === RESULT_LIMITS.tries;
      if (final || signal.aborted) return verdict;
      await clock.sleep(pauseAfter(tries, { remedy: 'retry', retryAfterMs }, clock.random(), RESULT_BACKOFF), signal);
      if (signal.aborted) return verdict;
    }
  };

  const notStoredYet = async (entries: readonly DraftEntry[]): Promise<readonly DraftEntry[]> => {
    if (entries.length === 0) return [];
    const stored = await store.findStored(entries.map((entry) => entry.accepted.run.scanId));
    const known = new Map(stored.map((result) => [result.scanId, result]));
    return entries.filter(({ accepted: { run } }) => !isStoredInFull(run, known.get(run.scanId), markdown));
  };

  const completePage = async (draft: PageDraft, signal: AbortSignal): Promise<ResolvedPage> => {
    const truncated = draft.entries.filter((entry) => entry.accepted.run.truncated);
    if (truncated.length === 0) return { entries: draft.entries, resolved: 0, pending: 0, skipped: 0 };
    const lacking = new Set(truncated.filter((entry) => needsFullResult(entry.accepted.run, markdown)));
    const wanted = await notStoredYet([...lacking]);
    const verdicts = await withinTime(clock, RESULT_LIMITS.pageMs, signal, (until) =>
      Promise.all(wanted.map((entry) => loadPatiently(entry.accepted.run, until))),
    );
    signal.throwIfAborted();
    const verdictOf = new Map(wanted.map((entry, index) => [entry, verdicts[index]]));
    const pending = verdicts.filter((verdict) => verdict.kind === 'pending').length;
    return {
      entries: draft.entries.map((entry) => applied(entry, verdictOf.get(entry), lacking.has(entry))),
      resolved: verdicts.length - pending,
      pending,
      skipped: truncated.length - verdicts.length,
    };
  };

  return { completePage, loadOnce };
}

interface Attempt {
  readonly verdict: ResultVerdict;
  readonly retryAfterMs: number | undefined;
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

/** Runs `work` with a signal that also aborts after `ms`; no timer outlives the work. */
async function withinTime<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const done = new AbortController();
  void clock.sleep(ms, AbortSignal.any([signal, done.signal])).then(() => over.abort());
  try {
    const until = AbortSignal.any([signal, over.signal]);
    setMaxListeners(0, until); // one a result, and a page may have two hundred
    return await work(until);
  } finally {
    done.abort();
  }
}
