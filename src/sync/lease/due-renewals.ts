const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Decides which leases are due for renewal. All times are monotonic, milliseconds.
 * @param maxUnreadMs time after which the state of a feed is read again
 */
export function createDueRenewals(leaseTtlMs: number, intervalMs: number, maxUnreadMs: number) {
  const readAt = new Map<string, number>();
  const extendedAt = new Map<string, number>();
  return {
    /** Makes a lease due in the next round: it was taken or released, or its renewal failed. */
    forget: (feed: string): void => {
      readAt.delete(feed);
      extendedAt.delete(feed);
    },
    /** Records a renewal, which also read the state of the feed. */
    renewed: (feed: string, at: number) => void readAt.set(feed, at),
    /** Records that a commit has extended the lease. */
    extended: (feed: string, at: number) => void extendedAt.set(feed, at),
    /** Returns whether the lease might expire, or the state of its feed was read too long ago. */
    isDue: (feed: string, now: number): boolean => {
      // The lease must last until the round after the next one, in case the next renewal fails.
      const mightExpire = now - (extendedAt.get(feed) ?? NEVER) > leaseTtlMs - 2 * intervalMs;
      // Rounds are not exact: without the tolerance, one that begins a little early would leave the state to the next one.
      return mightExpire || now - (readAt.get(feed) ?? NEVER) >= maxUnreadMs - 0.9 * intervalMs;
    },
  };
}
