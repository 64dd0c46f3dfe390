import { troubleOf } from '../outcome/trouble.js';
import type { Holding } from './byte-budget.js';
import { judgeResult, type ResultVerdict } from './full-result.js';
import { limitConcurrency } from './limit-concurrency.js';
import { LARGEST_ENTRY_BYTES } from './page-limit.js';
import type { Clock, FeedService, PendingReason, RawRun } from './ports.js';

/** A Retry-After of the single-run endpoint is obeyed up to this, milliseconds: the page has no longer. */
const LONGEST_QUIET_MS = 20_000;

export type WantedRun = Parameters<typeof judgeResult>[0];

/** How a try ended. What was loaded is held until it is released; where there was no room it was no try at all. */
export type Tried =
  | (Extract<ResultVerdict, { kind: 'loaded' }> & { readonly holding: Holding })
  | Extract<ResultVerdict, { kind: 'pending' }>
  | { readonly kind: 'no_room'; readonly bytes: number }; // its size, 0 while unknown

/** One page's turn among others, or that of one pending run. */
export interface Turn {
  readonly signal: AbortSignal;
  /** Higher goes first. */
  readonly priority: number;
  /** Called when the request is about to be sent; null where there is no room for it. */
  readonly hold: () => Holding | null;
  /** There is no room for a larger result. */
  readonly maxBytes: number;
  readonly onStarted: () => void;
}

/** One try for one result. Never rejects. */
export type TryResult = (run: WantedRun, turn: Turn) => Promise<Tried>;

export interface TryOptions {
  readonly service: FeedService;
  readonly clock: Clock;
  readonly markdown: boolean;
  /** Requests at once. */
  readonly concurrency: number;
}

/** Tries for full results, bounded in number over the whole process. */
export function createTries({ service, clock, markdown, concurrency }: TryOptions): TryResult {
  const limited = limitConcurrency(concurrency);
  let quietUntil = Number.NEGATIVE_INFINITY;

  const request = async (run: WantedRun, maxBytes: number, holding: Holding): Promise<RawRun> => {
    const { signal } = holding;
    // One Retry-After is meant for all requests.
    if (clock.monotonic() < quietUntil) await clock.sleep(quietUntil - clock.monotonic(), signal);
    signal.throwIfAborted();
    const bounds = { maxBytes, arrived: (bytes: number) => holding.arrived(bytes) };
    const answer = await service.readRun(run.scanId, { markdown, ...bounds }, signal);
    signal.throwIfAborted();
    return answer;
  };

  const attempt = async (run: WantedRun, { hold, maxBytes, onStarted }: Turn): Promise<Tried> => {
    const holding = hold();
    if (holding === null) return { kind: 'no_room', bytes: 0 };
    onStarted();
    try {
      const answer = await request(run, maxBytes, holding);
      const verdict = judgeResult(run, answer, markdown);
      if (verdict.kind === 'loaded') {
        holding.finished(answer.body.length);
        return { ...verdict, holding };
      }
      holding.release();
      return verdict;
    } catch (error) {
      holding.release();
      if (holding.needs !== null) return { kind: 'no_room', bytes: holding.needs };
      const { kind, retryAfterMs } = troubleOf(error);
      if (kind === 'too_large' && maxBytes < LARGEST_ENTRY_BYTES) return { kind: 'no_room', bytes: 0 };
      if (retryAfterMs !== undefined) {
        quietUntil = Math.max(quietUntil, clock.monotonic() + Math.min(retryAfterMs, LONGEST_QUIET_MS));
      }
      return { kind: 'pending', reason: reasonOf(kind) };
    }
  };

  return (run, turn) =>
    limited(() => attempt(run, turn), turn).catch(() => ({ kind: 'pending', reason: 'not_loaded' })); // its turn did not come in time
}

function reasonOf(kind: string): PendingReason {
  if (kind === 'http_404') return 'not_found';
  if (kind === 'too_large' || kind === 'too_many_values') return 'too_large';
  return 'not_loaded';
}
