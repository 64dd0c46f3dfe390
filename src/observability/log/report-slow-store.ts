import { type Clock, WAIT_OVER } from '../../core/clock.js';
import type { FeedStore } from '../../sync/ports/index.js';
import type { Logger } from './logger.js';

/** Duration after which a store call is reported as slow, milliseconds. */
const SLOW_MS = 10_000;

type Call = (...given: unknown[]) => Promise<unknown>;

/** Wraps a store so that it logs each slow call, which usually waits for a lock, and logs again when the call returns. */
export function reportSlowStore(
  store: FeedStore,
  logger: Pick<Logger, 'warn' | 'info'>,
  clock: Pick<Clock, 'sleep' | 'monotonic'>,
): FeedStore {
  const reported =
    (task: string, call: Call): Call =>
    async (...given) => {
      const startedAt = clock.monotonic();
      const returned = new AbortController();
      let slow = false;
      void clock.sleep(SLOW_MS, returned.signal).then(() => {
        if (returned.signal.aborted) return;
        slow = true;
        logger.warn('waiting for PostgreSQL', { task, seconds: SLOW_MS / 1000 });
      });
      try {
        return await call(...given);
      } finally {
        returned.abort(WAIT_OVER);
        if (slow) logger.info('PostgreSQL answered', { task, seconds: (clock.monotonic() - startedAt) / 1000 });
      }
    };
  const calls = Object.entries(store) as [string, Call][];
  return Object.fromEntries(calls.map(([task, call]) => [task, reported(task, call)])) as unknown as FeedStore;
}
