import { troubleOf } from '../outcome/trouble.js';
import { linkedSignal } from './linked-signal.js';
import type { Clock, FeedStore } from './ports.js';

/** Knows from its own statements whether the database answers, and tells those who wait when it does again. */
export interface DatabaseWatch {
  /** The store, watched. */
  readonly store: FeedStore;
  /**
   * The pause after a failure. Where the database was away it ends as soon as any statement of the process succeeds: that
   * of the lease comes often, while pauses grow to a minute. A `Retry-After` is waited for to its end.
   */
  waitOut(error: unknown, ms: number, signal: AbortSignal): Promise<void>;
}

export function watchDatabase(store: FeedStore, clock: Pick<Clock, 'sleep'>): DatabaseWatch {
  let away = false;
  let back = new AbortController();
  const answered = () => {
    if (!away) return;
    away = false;
    back.abort();
    back = new AbortController();
  };
  const watched = <T>(work: Promise<T>): Promise<T> =>
    work.then(
      (result) => {
        answered();
        return result;
      },
      (error) => {
        // What will not pass by itself, and values that are refused, are answers.
        if (troubleOf(error).remedy === 'retry') away = true;
        throw error;
      },
    );
  return {
    store: watchedStore(store, watched),
    waitOut: async (error, ms, signal) => {
      if (!away || troubleOf(error).retryAfterMs !== undefined) return clock.sleep(ms, signal);
      const until = linkedSignal(signal, back.signal);
      try {
        await clock.sleep(ms, until.signal);
      } finally {
        until.unlink();
      }
    },
  };
}

/** All of its methods, each of which is one or a few statements; but not announcements, which mostly ask the database nothing. */
function watchedStore(store: FeedStore, watched: <T>(work: Promise<T>) => Promise<T>): FeedStore {
  return new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function' || name === 'announce') return method;
      return (...args: unknown[]) => watched(Reflect.apply(method, target, args) as Promise<unknown>);
    },
  });
}
