import type { Clock } from '../../core/clock.js';
import type { FeedStore } from '../ports/index.js';
import type { FeedShare } from './feed-share.js';

/** The tables of a schema in which processes are announced. */
export type CheckInStore = Pick<FeedStore, 'checkIn' | 'checkOut'>;

/**
 * Announces this process to those that it shares feeds with, and finds out how many they are. Its feeds may have a schema each. It
 * is announced only in the first one by name, and so are the others.
 */
export interface CheckIn {
  /**
   * Announces the process, at most twice in the interval. Does nothing if it follows one feed: it leads that or none. Rejects when
   * the first announcement failed. Later ones may fail: the processes that it knows still count.
   * @param schema one whose tables can be used
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
  const usable = new Map<string, CheckInStore>();
  const dead = new Set<string>();
  /** Where the process is announced, or may be. */
  let place: Place | null = null;
  let checkedAt: number | null = null;
  let current: Promise<void> | null = null;

  const checkOut = async ({ store }: Place, of = holder) => {
    await store.checkOut(of).catch(() => {});
  };
  const move = async (to: Place) => {
    if (place !== null && place.schema !== to.schema) await checkOut(place);
    place = to;
  };
  const announce = async () => {
    const now = clock.monotonic();
    const first = firstByName(usable);
    await move(first);
    try {
      share.checkedIn(await first.store.checkIn(holder, share.followed(), leaseTtlMs));
      checkedAt = now;
    } catch (error) {
      // Until it is checked again: the next announcement is made in another schema.
      usable.delete(first.schema);
      throw error;
    }
  };
  return {
    checkIn: async (schema, store) => {
      if (share.followed() < 2) return;
      usable.set(schema, store);
      if (checkedAt !== null && clock.monotonic() - checkedAt < intervalMs / 2) return;
      current ??= announce().finally(() => {
        current = null;
      });
      await current.catch((error: unknown) => {
        if (checkedAt === null) throw error;
      });
    },
    leave: async (schema) => {
      usable.delete(schema);
      await current?.catch(() => {});
      if (place?.schema !== schema) return;
      const left = place;
      place = null;
      checkedAt = null;
      await checkOut(left);
    },
    checkOutDead: async (predecessor) => {
      if (place === null || predecessor === holder || dead.has(predecessor)) return;
      dead.add(predecessor);
      await checkOut(place, predecessor);
    },
  };
}

function firstByName(stores: ReadonlyMap<string, CheckInStore>): Place {
  const [schema] = [...stores.keys()].sort();
  return { schema, store: stores.get(schema as string) } as Place;
}
