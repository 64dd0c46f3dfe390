/** Decides which leases need no renewal because a commit has just extended them. Times are monotonic, milliseconds. */
export interface Extensions {
  /** Records that a lease was taken or renewed, by which the state of its feed is read too. */
  renewed(feed: string, at: number): void;
  /** Records that a commit has extended a lease. */
  extended(feed: string, at: number): void;
  /**
   * Returns for how long a lease is held at least, counted from now, if it needs no renewal before the next round. Null: renew it,
   * because it might expire, or because the state of its feed was read too long ago.
   */
  heldForMs(feed: string, now: number): number | null;
  forget(feed: string): void;
}

/** @param maxUnreadMs maximum time between two reads of the state of a feed */
export function createExtensions(leaseTtlMs: number, intervalMs: number, maxUnreadMs: number): Extensions {
  const renewedAt = new Map<string, number>();
  const extendedAt = new Map<string, number>();
  return {
    renewed: (feed, at) => void renewedAt.set(feed, at),
    extended: (feed, at) => void extendedAt.set(feed, at),
    heldForMs: (feed, now) => {
      const age = now - (extendedAt.get(feed) ?? Number.NEGATIVE_INFINITY);
      const unreadMs = now - (renewedAt.get(feed) ?? Number.NEGATIVE_INFINITY);
      const isSafe = age <= leaseTtlMs - 2 * intervalMs; // after the next round, time is left for another attempt
      const isReadRecently = unreadMs < maxUnreadMs - intervalMs / 2; // at the next round it is due; rounds are not exact
      return isSafe && isReadRecently ? leaseTtlMs - age : null;
    },
    forget: (feed) => {
      renewedAt.delete(feed);
      extendedAt.delete(feed);
    },
  };
}
