import { type Clock, WAIT_OVER } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import type { FeedStore } from '../ports/index.js';
import { linkedSignal } from '../waiting/linked-signal.js';

export interface DatabaseWatch {
  /** The store, with its statements watched. */
  readonly store: FeedStore;
  /** Records that a statement for this feed other than those of the store has succeeded. */
  databaseAnswered(): void;
  /**
   * Pauses after a failure. If the database was unreachable, the pause ends as soon as any statement of this feed succeeds: the
   * lease is renewed often, while pauses grow to a minute. A `Retry-After` is never shortened.
   */
  pauseAfterFailure(error: unknown, ms: number, signal: AbortSignal): Promise<void>;
}

/** Tracks by the store's own statements whether the database is reachable, and ends pauses when it is reachable again. */
export function watchDatabase(store: FeedStore, clock: Clock): DatabaseWatch {
  let unreachable = false;
  let recovery = new AbortController();
  const databaseAnswered = () => {
    if (!unreachable) return;
    unreachable = false;
    recovery.abort(WAIT_OVER);
    recovery = new AbortController();
  };
  const watched = <T>(work: Promise<T>): Promise<T> =>
    work.then(
      (result) => {
        databaseAnswered();
        return result;
      },
      (error) => {
        // Errors that need an operator, and refused values, are answers of a reachable database. If statements wait too long for a
        // connection, it is overloaded: other statements succeed meanwhile, and must not end the pauses.
        const { action, kind } = classifyError(error);
        if (action === 'retry' && kind !== 'pool_exhausted') unreachable = true;
        throw error;
      },
    );
  return {
    store: watchedStore(store, watched),
    databaseAnswered,
    pauseAfterFailure: async (error, ms, signal) => {
      if (!unreachable || classifyError(error).retryAfterMs !== undefined) return clock.sleep(ms, signal);
      const until = linkedSignal(signal, recovery.signal);
      try {
        await clock.sleep(ms, until.signal);
      } finally {
        until.unlink();
      }
    },
  };
}

/** Watches every method, each of which is one or a few statements. */
function watchedStore(store: FeedStore, watched: <T>(work: Promise<T>) => Promise<T>): FeedStore {
  return new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => watched(Reflect.apply(method, target, args) as Promise<unknown>);
    },
  });
}
