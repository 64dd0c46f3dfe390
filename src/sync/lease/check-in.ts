import type { FeedStore } from '../ports/index.js';
import type { ProcessLeases } from './process-leases.js';

/** The announcement of this process in a schema, so that processes find those that they share feeds with. */
export interface CheckIn {
  /**
   * Announces the process, at most twice in the interval, if it follows several feeds and is to be announced in this schema. Otherwise
   * ends its announcement.
   */
  checkIn(): Promise<void>;
  /** Ends the announcement, so that the others need not wait for it to expire. Never rejects. */
  checkOut(): Promise<void>;
  /** Ends the announcement of a dead predecessor, so that shares do not change for a moment. Never rejects. */
  checkOutDead(predecessor: string): Promise<void>;
}

export function createCheckIn(
  schema: string,
  store: Pick<FeedStore, 'checkIn' | 'checkOut'>,
  process: ProcessLeases,
): CheckIn {
  const { clock, holder, leaseTtlMs, intervalMs, share, meetingSchemas } = process;
  const dead = new Set<string>();
  let checkedAt: number | null = null;
  let current: Promise<void> | null = null;
  const announce = async () => {
    const now = clock.monotonic();
    const announced = await store.checkIn(holder, share.followed(), leaseTtlMs);
    checkedAt = now;
    share.setProcesses(meetingSchemas.found(schema, announced, now));
  };
  const checkOut = async () => {
    await current?.catch(() => {});
    if (checkedAt === null) return;
    checkedAt = null;
    await store.checkOut(holder).catch(() => {});
  };
  return {
    checkIn: async () => {
      if (!meetingSchemas.has(schema)) return checkOut();
      if (share.followed() < 2) return;
      if (checkedAt !== null && clock.monotonic() - checkedAt < intervalMs / 2) return;
      current ??= announce().finally(() => {
        current = null;
      });
      await current;
    },
    checkOut,
    checkOutDead: async (predecessor) => {
      if (checkedAt === null || predecessor === holder || dead.has(predecessor)) return;
      dead.add(predecessor);
      await store.checkOut(predecessor).catch(() => {});
    },
  };
}
