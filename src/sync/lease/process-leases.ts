import type { Clock } from '../../core/clock.js';
import { limitConcurrency } from '../waiting/limit-concurrency.js';
import { createAnnouncementSchemas } from './announcement-schemas.js';
import { createFeedShare } from './feed-share.js';

/** Number of rounds within the time to live of a lease. Two renewals in a row may fail; if a commit extended the lease, one. */
const ROUNDS_PER_TTL = 3;
/**
 * Maximum time between two rounds, and between two reads of the state of a feed, milliseconds: a requested pass waits for a renewal,
 * and the lease may last an hour.
 */
export const MAX_ROUND_INTERVAL_MS = 10_000;
/** Maximum number of leases that are taken at once, so that renewals do not wait long for a connection. */
const TAKEN_AT_ONCE = 8;

interface LeaseSettings {
  readonly clock: Clock;
  /** Identifies this process among those that may hold a lease. */
  readonly holder: string;
  /** Returns whether a holder of a lease was a process of the same host that has exited. */
  readonly isDead: (holder: string) => boolean;
  readonly leaseTtlMs: number;
}

export type ProcessLeases = Readonly<ReturnType<typeof createProcessLeases>>;

/** Creates the parts that all leases of a process share, across the schemas of its feeds. */
export function createProcessLeases(settings: LeaseSettings) {
  const { leaseTtlMs } = settings;
  /** Time between two rounds, milliseconds. */
  const intervalMs = Math.min(leaseTtlMs / ROUNDS_PER_TTL, MAX_ROUND_INTERVAL_MS);
  return {
    ...settings,
    intervalMs,
    share: createFeedShare(leaseTtlMs, intervalMs),
    announcementSchemas: createAnnouncementSchemas(2 * intervalMs),
    /** Holders whose leases this process has replaced. */
    deadPredecessors: new Set<string>(),
    /** Limits the leases that are taken at the same time. */
    limitTaking: limitConcurrency(TAKEN_AT_ONCE),
    waitForRow: createRowWait(),
  };
}

/**
 * Creates a function that runs a statement that waits for the row of a feed. Returns null, without running it, while another one
 * waits: several at once could use up the connections.
 */
function createRowWait() {
  let isWaiting = false;
  return <T>(statement: () => Promise<T>): Promise<T> | null => {
    if (isWaiting) return null;
    isWaiting = true;
    return statement().finally(() => {
      isWaiting = false;
    });
  };
}
