/** Decides which leases are due for renewal. All times are monotonic, milliseconds. */
export interface DueRenewals {
  /** The first renewal of a lease is always due: it reads the state of the feed. */
  taken(feed: string): void;
  renewed(feed: string, at: number): void;
  /** Records that a renewal failed, so that the lease is due again in the next round. */
  failed(feed: string): void;
  /** Records that a commit has extended the lease. */
  extended(feed: string, at: number): void;
  released(feed: string): void;
  /** Returns whether the lease might expire, or the state of its feed was read too long ago. */
  isDue(feed: string, now: number): boolean;
}

interface Renewal {
  readAt: number;
  extendedAt: number;
}

const NEVER = Number.NEGATIVE_INFINITY;

/** @param maxUnreadMs time after which the state of a feed is read again */
export function createDueRenewals(leaseTtlMs: number, intervalMs: number, maxUnreadMs: number): DueRenewals {
  const renewals = new Map<string, Renewal>();
  const update = (feed: string, change: Partial<Renewal>) => {
    const renewal = renewals.get(feed);
    if (renewal !== undefined) Object.assign(renewal, change);
  };
  return {
    taken: (feed) => void renewals.set(feed, { readAt: NEVER, extendedAt: NEVER }),
    renewed: (feed, at) => update(feed, { readAt: at }),
    failed: (feed) => update(feed, { readAt: NEVER }),
    extended: (feed, at) => update(feed, { extendedAt: at }),
    released: (feed) => void renewals.delete(feed),
    isDue: (feed, now) => {
      const { readAt, extendedAt } = renewals.get(feed) ?? { readAt: NEVER, extendedAt: NEVER };
      const mightExpire = now - extendedAt > leaseTtlMs - 2 * intervalMs; // if the next renewal failed too
      // Rounds are not exact: without the tolerance, one that begins a little early would leave the state to the next one.
      return mightExpire || now - readAt >= maxUnreadMs - 0.9 * intervalMs;
    },
  };
}
