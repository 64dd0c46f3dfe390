import type { Clock } from '../../core/clock.js';
import { type LimitedRun, limitConcurrency } from '../waiting/limit-concurrency.js';
import { type AnnouncementSchemas, createAnnouncementSchemas } from './announcement-schemas.js';
import { createFeedShare, type FeedShare } from './feed-share.js';
import { createRowWait, type RowWait } from './row-wait.js';

/** Number of rounds within the time to live of a lease. Two renewals in a row may fail; if a commit extended the lease, one. */
const ROUNDS_PER_TTL = 3;
/**
 * Maximum time between two rounds, and between two reads of the state of a feed, milliseconds: a requested pass waits for a renewal,
 * and the lease may last an hour.
 */
export const MAX_ROUND_INTERVAL_MS = 10_000;
/** Maximum number of leases that are taken at once, so that renewals do not wait long for a connection. */
const TAKEN_AT_ONCE = 8;

/** The parts that all leases of a process share, across the schemas of its feeds. */
export interface ProcessLeases {
  readonly clock: Clock;
  /** Identifies this process among those that may hold a lease. */
  readonly holder: string;
  readonly leaseTtlMs: number;
  /** Time between two rounds, milliseconds. */
  readonly intervalMs: number;
  readonly share: FeedShare;
  readonly announcementSchemas: AnnouncementSchemas;
  /** Holders whose leases this process has replaced. */
  readonly deadPredecessors: Set<string>;
  /** Limits the leases that are taken at the same time. */
  readonly limitTaking: LimitedRun;
  /** Limits the statements that wait for rows. */
  readonly waitForRow: RowWait;
}

export function createProcessLeases(parts: Pick<ProcessLeases, 'clock' | 'holder' | 'leaseTtlMs'>): ProcessLeases {
  const { clock, holder, leaseTtlMs } = parts;
  const intervalMs = Math.min(leaseTtlMs / ROUNDS_PER_TTL, MAX_ROUND_INTERVAL_MS);
  return {
    ...{ clock, holder, leaseTtlMs, intervalMs },
    share: createFeedShare(leaseTtlMs, intervalMs),
    announcementSchemas: createAnnouncementSchemas(2 * intervalMs),
    deadPredecessors: new Set(),
    limitTaking: limitConcurrency(TAKEN_AT_ONCE),
    waitForRow: createRowWait(),
  };
}
