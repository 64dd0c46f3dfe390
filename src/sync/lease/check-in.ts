import type { ProcessStore } from '../ports/index.js';
import type { ProcessLeases } from './process-leases.js';

/** Announces this process in a schema, so that processes that share feeds find each other. */
export function createCheckIn(schema: string, store: ProcessStore, process: ProcessLeases) {
  const { clock, holder, leaseTtlMs, intervalMs, share, announcementSchemas, deadPredecessors } = process;
  const endedDead = new Set<string>();
  let checkedAt: number | null = null;
  let current: Promise<void> | null = null;
  const endDead = async () => {
    for (const predecessor of deadPredecessors) {
      if (endedDead.has(predecessor)) continue;
      endedDead.add(predecessor);
      await store.checkOut(predecessor).catch(() => {});
    }
  };
  const announce = async () => {
    const now = clock.monotonic();
    await endDead();
    const announced = await store.checkIn(holder, share.followed(), leaseTtlMs);
    checkedAt = now;
    share.setProcesses(announcementSchemas.record(schema, announced, now));
  };
  /** Ends the announcement, so that the others need not wait for it to expire. Never rejects. */
  const checkOut = async () => {
    await current?.catch(() => {});
    if (checkedAt === null) return;
    checkedAt = null;
    await store.checkOut(holder).catch(() => {});
  };
  return {
    /**
     * Announces the process if it follows several feeds and this schema is used for announcements; otherwise ends its announcement.
     * Announces again only after half of the interval. Waits, and may reject, only until the first success: from then on, feeds do
     * not wait for a locked table.
     */
    checkIn: async (): Promise<void> => {
      if (share.followed() < 2 || !announcementSchemas.has(schema)) return checkOut();
      if (checkedAt !== null && clock.monotonic() - checkedAt < intervalMs / 2) return;
      current ??= announce().finally(() => {
        current = null;
      });
      if (checkedAt === null) await current;
      else current.catch(() => {});
    },
    checkOut,
    /** Ends the announcements of a dead predecessor, so that it does not count towards the shares. Never rejects. */
    checkOutPredecessor: async (predecessor: string): Promise<void> => {
      if (predecessor === holder) return;
      deadPredecessors.add(predecessor);
      if (checkedAt !== null) await endDead();
    },
  };
}
