import { classifyError, type Failure } from '../../core/errors.js';
import type { Reservation } from '../memory/memory-budget.js';
import { LARGEST_ENTRY_BYTES } from '../page/page-limit.js';
import type { FeedService, PendingReason, RawRun } from '../ports/index.js';
import { judgeResult, type ResultVerdict } from './full-result.js';
import type { ResultSizes } from './result-sizes.js';

export type WantedRun = Parameters<typeof judgeResult>[0];

/**
 * The outcome of one attempt. The memory of a loaded result stays reserved until its reservation is released. `does_not_fit`:
 * there was not enough memory, so the attempt does not count.
 */
export type LoadOutcome =
  | (Extract<ResultVerdict, { kind: 'loaded' }> & { readonly reservation: Reservation })
  | Postponed
  | { readonly kind: 'does_not_fit' };

/** The result could not be loaded. `retryAfterMs`: minimum pause that the service asked for, milliseconds. */
export type Postponed = Extract<ResultVerdict, { kind: 'pending' }> & Pick<Failure, 'retryAfterMs'>;

/** Options for loading the results of one page, or one pending result. */
export interface LoadOptions {
  readonly signal: AbortSignal;
  /** The memory of the result. */
  readonly reservation: Reservation;
  /** Maximum size of the result, bytes. */
  readonly maxBytes: number;
}

export interface LoadSettings {
  readonly service: FeedService;
  readonly markdown: boolean;
  readonly sizes: ResultSizes;
  /** Size to assume for a result that did not fit, bytes. */
  readonly unfitBytes: number;
}

/** Creates a function that makes one attempt to load a result of a feed. It never rejects. */
export function createLoadResult({ service, markdown, sizes, unfitBytes }: LoadSettings) {
  const request = async (run: WantedRun, { maxBytes, reservation, signal }: LoadOptions): Promise<RawRun> => {
    signal.throwIfAborted();
    const bounds = { maxBytes, expectedBytes: sizes.largest ?? 0, reserve: reservation.resize };
    const answer = await service.readRun(run.scanId, { markdown, ...bounds }, signal);
    signal.throwIfAborted();
    return answer;
  };

  return async (run: WantedRun, options: LoadOptions): Promise<LoadOutcome> => {
    const { reservation, maxBytes } = options;
    const expected = reservation.bytes;
    try {
      const answer = await request(run, options);
      const { length } = answer.body;
      sizes.add(length);
      const verdict = judgeResult(run, answer, markdown);
      if (verdict.kind === 'loaded') {
        void reservation.resize(length);
        return { ...verdict, reservation };
      }
      reservation.release();
      return verdict;
    } catch (error) {
      const { bytes, isRefused } = reservation;
      reservation.release();
      const { kind, action, retryAfterMs } = classifyError(error);
      if (isRefused || (kind === 'too_large' && maxBytes < LARGEST_ENTRY_BYTES)) {
        sizes.add(unfitBytes);
        return { kind: 'does_not_fit' };
      }
      if (bytes > expected) sizes.add(bytes);
      return { kind: 'pending', reason: reasonOf(kind), ...(action !== 'hold' && { retryAfterMs }) };
    }
  };
}

function reasonOf(kind: string): PendingReason {
  if (kind === 'http_404') return 'not_found';
  if (kind === 'too_large' || kind === 'too_many_values') return 'too_large';
  return 'not_loaded';
}
