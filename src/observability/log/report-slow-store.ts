import { type Clock, WAIT_OVER } from '../../core/clock.js';
import type { FeedStore } from '../../sync/ports/index.js';
import type { Logger } from './logger.js';

/** Duration after which a store call is reported as slow, milliseconds. */
const SLOW_MS = 10_000;

type Call = (...given: unknown[]) => Promise<unknown>;

/**
 * Wraps a store so that it logs slow calls, which usually wait for a lock, and logs again when they have returned. Calls of the
 * same task that are slow at the same time are logged together: with many feeds, there may be a thousand.
 */
export function reportSlowStore(store: FeedStore, logger: Logger, clock: Clock): FeedStore {
  const reported = (task: string, call: Call): Call => {
    let running = 0;
    let slow = 0;
    let slowSince = 0;
    return async (...given) => {
      const startedAt = clock.monotonic();
      const returned = new AbortController();
      let isSlow = false;
      running += 1;
      void clock.sleep(SLOW_MS, returned.signal).then(() => {
        if (returned.signal.aborted) return;
        isSlow = true;
        slow += 1;
        if (slow > 1) return;
        slowSince = startedAt;
        logger.warn('waiting for PostgreSQL', { task, calls: running, seconds: SLOW_MS / 1000 });
      });
      try {
        return await call(...given);
      } finally {
        running -= 1;
        returned.abort(WAIT_OVER);
        if (isSlow) slow -= 1;
        if (isSlow && slow === 0) {
          logger.info('PostgreSQL responded', { task, seconds: (clock.monotonic() - slowSince) / 1000 });
        }
      }
    };
  };
  const calls = Object.entries(store) as [string, Call][];
  return Object.fromEntries(calls.map(([task, call]) => [task, reported(task, call)])) as unknown as FeedStore;
}
