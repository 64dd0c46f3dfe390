import { classifyError, type Failure } from '../../core/errors.js';
import type { Reservation } from '../memory/memory-budget.js';
import { LARGEST_ENTRY_BYTES } from '../page/page-limit.js';
import type { FeedService, PendingReason, RawRun } from '../ports/index.js';
import { limitConcurrency } from '../waiting/limit-concurrency.js';
import { judgeResult, type ResultVerdict } from './full-result.js';

export type WantedRun = Parameters<typeof judgeResult>[0];

/**
 * The outcome of one attempt. The memory of a loaded result stays reserved until its reservation is released. `does_not_fit`:
 * there was not enough memory, so the attempt does not count; with the required bytes, 0 if unknown.
 */
export type LoadOutcome =
  | (Extract<ResultVerdict, { kind: 'loaded' }> & { readonly reservation: Reservation })
  | Postponed
  | { readonly kind: 'does_not_fit'; readonly bytes: number };

/** The result could not be loaded. `retryAfterMs`: minimum pause that the service asked for, milliseconds. */
export type Postponed = Extract<ResultVerdict, { kind: 'pending' }> & Pick<Failure, 'retryAfterMs'>;

/** Options for loading the results of one page, or one pending result. */
export interface LoadOptions {
  readonly signal: AbortSignal;
  /** Higher goes first. */
  readonly priority: number;
  /** Reserves memory when the request is about to be sent. Returns null if there is none. */
  readonly reserve: () => Reservation | null;
  /** Maximum size of a result, bytes. */
  readonly maxBytes: number;
  /** Called when the request is sent. */
  readonly onRequest: () => void;
}

/** Makes one attempt to load a result. Never rejects. */
export type LoadResult = (run: WantedRun, options: LoadOptions) => Promise<LoadOutcome>;

export interface LoadSettings {
  readonly service: FeedService;
  readonly markdown: boolean;
  /** Maximum number of requests at once. */
  readonly concurrency: number;
}

/** Creates a loader that limits the number of concurrent requests for the results of a feed. */
export function createLoadResult({ service, markdown, concurrency }: LoadSettings): LoadResult {
  const limited = limitConcurrency(concurrency);

  const request = async (run: WantedRun, maxBytes: number, reservation: Reservation): Promise<RawRun> => {
    const { signal } = reservation;
    signal.throwIfAborted();
    const bounds = { maxBytes, onReceived: (bytes: number) => reservation.grow(bytes) };
    const answer = await service.readRun(run.scanId, { markdown, ...bounds }, signal);
    signal.throwIfAborted();
    return answer;
  };

  const attempt = async (run: WantedRun, { reserve, maxBytes, onRequest }: LoadOptions): Promise<LoadOutcome> => {
    const reservation = reserve();
    if (reservation === null) return { kind: 'does_not_fit', bytes: 0 };
    onRequest();
    try {
      const answer = await request(run, maxBytes, reservation);
      const verdict = judgeResult(run, answer, markdown);
      if (verdict.kind === 'loaded') {
        reservation.finish(answer.body.length);
        return { ...verdict, reservation };
      }
      reservation.release();
      return verdict;
    } catch (error) {
      reservation.release();
      if (reservation.preemptedFor !== null) return { kind: 'does_not_fit', bytes: reservation.preemptedFor };
      const { kind, action, retryAfterMs } = classifyError(error);
      if (kind === 'too_large' && maxBytes < LARGEST_ENTRY_BYTES) return { kind: 'does_not_fit', bytes: 0 };
      return { kind: 'pending', reason: reasonOf(kind), ...(action === 'retry' && { retryAfterMs }) };
    }
  };

  return (run, options) =>
    // Rejects only if the signal aborts while the request waits for others.
    limited(() => attempt(run, options), options).catch(() => ({ kind: 'pending', reason: 'not_loaded' }));
}

function reasonOf(kind: string): PendingReason {
  if (kind === 'http_404') return 'not_found';
  if (kind === 'too_large' || kind === 'too_many_values') return 'too_large';
  return 'not_loaded';
}
