import type { Clock } from '../../core/clock.js';
import type { FeedService } from '../../sync/ports/index.js';
import { HttpStatusError, httpStatusError } from '../errors/status-errors.js';

/** Maximum pause that a request waits for, milliseconds: as long as a page may wait for its results. */
const MAX_WAIT_MS = 20_000;

/**
 * Returns a service that sends no request before the time that it asked for with `Retry-After`, whichever task requests it. Pages and
 * single runs have pauses of their own. A request waits for a short pause. During a long one it fails at once with the same error,
 * whose `retryAfterMs` is what is left of the pause.
 */
export function obeyRetryAfter(service: FeedService, clock: Clock): FeedService {
  const createGate = () => {
    let refusal: HttpStatusError | null = null;
    let pausedUntil = Number.NEGATIVE_INFINITY;
    const waitForPause = async (signal: AbortSignal) => {
      while (refusal !== null && clock.monotonic() < pausedUntil) {
        const leftMs = pausedUntil - clock.monotonic();
        if (leftMs > MAX_WAIT_MS) throw httpStatusError({ ...refusal, retryAfterMs: leftMs });
        await clock.sleep(leftMs, signal);
        signal.throwIfAborted();
      }
    };
    return async <T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> => {
      await waitForPause(signal);
      return send().catch((error) => {
        if (asksForPause(error)) {
          refusal = error;
          pausedUntil = Math.max(pausedUntil, clock.monotonic() + (error.retryAfterMs ?? 0));
        }
        throw error;
      });
    };
  };
  const page = createGate();
  const run = createGate();
  return {
    readPage: (request, signal, whileQueued) => page(() => service.readPage(request, signal, whileQueued), signal),
    readRun: (scanId, options, signal) => run(() => service.readRun(scanId, options, signal), signal),
  };
}

/** A refused key or setting is retried whatever the service asks for, and a missing run says nothing about other runs. */
function asksForPause(error: unknown): error is HttpStatusError {
  return error instanceof HttpStatusError && error.action === 'retry';
}
