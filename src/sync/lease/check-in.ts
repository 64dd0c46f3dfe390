import type { Clock } from '../../core/clock.js';
import type { FeedStore } from '../ports/index.js';
import type { FeedShare } from './feed-share.js';

/** Announces this process to those that it shares feeds with, and finds out how many they are. */
export interface CheckIn {
  /** Announces the process, at most twice in the interval. Does nothing if it follows one feed: it leads that or none. */
  checkIn(): Promise<void>;
  /** Ends the announcement, so that the others need not wait for it to expire. Never rejects. */
  checkOut(): Promise<void>;
  /** Ends the announcement of a dead predecessor, so that shares do not change for a moment. Never rejects. */
  checkOutDead(predecessor: string): Promise<void>;
}

export interface CheckInParts {
  readonly store: Pick<FeedStore, 'checkIn' | 'checkOut'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly holder: string;
  readonly leaseTtlMs: number;
  readonly intervalMs: number;
}

export function createCheckIn(parts: CheckInParts, share: FeedShare): CheckIn {
  const { store, clock, holder, leaseTtlMs, intervalMs } = parts;
  let checkedAt: number | null = null;
  let current: Promise<void> | null = null;
  const dead = new Set<string>();
  const announce = async () => {
    const now = clock.monotonic();
    share.setProcesses(await store.checkIn(holder, share.followed(), leaseTtlMs));
    checkedAt = now;
  };
  return {
    checkIn: async () => {
      if (share.followed() < 2) return;
      if (checkedAt !== null && clock.monotonic() - checkedAt < intervalMs / 2) return;
      current ??= announce().finally(() => {
        current = null;
      });
      await current;
    },
    checkOut: async () => {
      if (checkedAt === null) return;
      checkedAt = null;
      await store.checkOut(holder).catch(() => {});
    },
    checkOutDead: async (predecessor) => {
      if (share.followed() < 2 || predecessor === holder || dead.has(predecessor)) return;
      dead.add(predecessor);
      await store.checkOut(predecessor).catch(() => {});
    },
  };
}
