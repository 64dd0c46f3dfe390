import type { Clock } from '../../core/clock.js';
import type { FeedStore } from '../ports/index.js';
import type { FeedShare } from './feed-share.js';

/** The tables of a schema in which processes are announced. */
export type CheckInStore = Pick<FeedStore, 'checkIn' | 'checkOut'>;

/**
 * Announces this process to those that it shares feeds with, and finds out how many they are. Its feeds may have a schema each. It
 * is announced only in the first one by name, where processes with the same feeds meet.
 */
export interface CheckIn {
  /**
   * Announces the process, at most twice in the interval. Does nothing if it follows one feed: it leads that or none. Waits only
   * until the other processes are known for the first time, and rejects only if that fails: from then on a failure, or a table
   * that is locked in one schema, must not keep the feeds of the others waiting.
   * @param schema one of the process
   */
  checkIn(schema: string, store: CheckInStore): Promise<void>;
  /** Ends the use of a schema, and an announcement there, so that the others need not wait for it to expire. Never rejects. */
  leave(schema: string): Promise<void>;
  /** Ends the announcement of a dead predecessor, so that shares do not change for a moment. Never rejects. */
  checkOutDead(predecessor: string): Promise<void>;
}

export interface CheckInParts {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly holder: string;
  readonly leaseTtlMs: number;
  readonly intervalMs: number;
}

interface Place {
  readonly schema: string;
  readonly store: CheckInStore;
}

export function createCheckIn({ clock, holder, leaseTtlMs, intervalMs }: CheckInParts, share: FeedShare): CheckIn {
  const stores = new Map<string, CheckInStore>();
  /** When schemas refused the process, monotonic time. They are not tried for the time to live of a lease. */
  const refusedAt = new Map<string, number>();
  const dead = new Set<string>();
  let announced: (Place & { readonly at: number }) | null = null;
  let current: { readonly schema: string; readonly ended: Promise<void> } | null = null;
  let areOthersKnown = false;
  let attemptedAt = Number.NEGATIVE_INFINITY;

  const checkOut = async ({ store }: Place, of = holder) => {
    await store.checkOut(of).catch(() => {});
  };
  const findPlace = (now: number): Place => {
    const isRefused = (schema: string) => now - (refusedAt.get(schema) ?? Number.NEGATIVE_INFINITY) < leaseTtlMs;
    const names = [...stores.keys()].sort();
    const schema = names.find((name) => !isRefused(name)) ?? (names[0] as string);
    return { schema, store: stores.get(schema) as CheckInStore };
  };
  const announce = async (place: Place, now: number) => {
    const before = announced;
    const moves = before?.schema !== place.schema;
    try {
      if (moves) for (const predecessor of dead) await checkOut(place, predecessor);
      share.checkedIn(await place.store.checkIn(holder, share.followed(), leaseTtlMs));
    } catch (error) {
      // The announcement lasts for the time to live: after fewer failures the process stays where it is.
      if (before === null || moves || now - before.at >= leaseTtlMs) refusedAt.set(place.schema, now);
      throw error;
    }
    areOthersKnown = true;
    announced = { ...place, at: now };
    if (before !== null && moves) void checkOut(before);
  };
  const begin = () => {
    const now = clock.monotonic();
    const place = findPlace(now);
    attemptedAt = now;
    const ended = announce(place, now).finally(() => {
      current = null;
    });
    return { schema: place.schema, ended };
  };
  return {
    checkIn: async (schema, store) => {
      if (share.followed() < 2) return;
      stores.set(schema, store);
      if (areOthersKnown && clock.monotonic() - attemptedAt < intervalMs / 2) return;
      current ??= begin();
      if (areOthersKnown) current.ended.catch(() => {});
      else await current.ended;
    },
    leave: async (schema) => {
      stores.delete(schema);
      refusedAt.delete(schema);
      if (current?.schema === schema) await current.ended.catch(() => {});
      if (announced?.schema !== schema) return;
      const left = announced;
      announced = null;
      attemptedAt = Number.NEGATIVE_INFINITY;
      await checkOut(left);
    },
    checkOutDead: async (predecessor) => {
      if (predecessor === holder || dead.has(predecessor)) return;
      dead.add(predecessor);
      if (announced !== null) await checkOut(announced, predecessor);
    },
  };
}
