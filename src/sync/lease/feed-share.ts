/** Part of its surplus feeds that a process gives back in one round, since each pauses while it changes processes. */
const GIVEN_BACK = 0.1;

/** Returns how many feeds a process leads if it shares those that it follows with others. Pure. */
export function shareOf(feeds: number, processes: number): number {
  return Math.ceil(feeds / processes);
}

export type FeedShare = ReturnType<typeof createFeedShare>;

/**
 * Decides which feeds a process leads, so that processes that follow the same feeds share them evenly. Shares count leases,
 * even of failing feeds: a feed that fails stays where it is. All times are monotonic, milliseconds.
 * @param roundMs the time between two rounds
 */
export function createFeedShare(leaseTtlMs: number, roundMs: number) {
  const followed = new Set<string>();
  /** Feeds that the process leads, in the order in which it took them. `kept`: others did not take it, so it is not surplus. */
  const led = new Map<string, { readonly kept: boolean }>();
  const freeSince = new Map<string, number>();
  let processes: readonly string[] = [];
  let surplus = new Set<string>();
  let decidedAt = Number.NEGATIVE_INFINITY;

  const share = () => shareOf(followed.size, Math.max(1, processes.length));
  const counted = () => [...led].filter(([, { kept }]) => !kept).map(([feed]) => feed);
  /** Returns the feeds to give back: a part of those beyond the share, the ones taken last. */
  const findSurplus = () => {
    const feeds = counted();
    const number = Math.max(0, Math.ceil((feeds.length - share()) * GIVEN_BACK));
    return new Set(feeds.slice(feeds.length - number));
  };
  return {
    follow: (feed: string) => void followed.add(feed),
    unfollow: (feed: string): void => {
      followed.delete(feed);
      freeSince.delete(feed);
    },
    /** Returns the number of feeds that the process follows. */
    followed: () => followed.size,
    /** Sets the names of the live processes, in a fixed order. */
    setProcesses: (names: readonly string[]): void => {
      if (names.length === processes.length && names.every((name, index) => name === processes[index])) return;
      processes = names;
      // The shares have changed, so other processes may now take feeds that they left free before.
      freeSince.clear();
      for (const feed of led.keys()) led.set(feed, { kept: false });
    },
    /** Records whether a feed was free when its status was checked. */
    recordCheck: (feed: string, isFree: boolean, now: number): void => {
      if (!isFree) freeSince.delete(feed);
      else if (!freeSince.has(feed)) freeSince.set(feed, now);
    },
    /**
     * Returns whether the process may take the lease of a feed, which then counts until it is released. Beyond its share, it may
     * take only a feed that was free for the duration of a lease while the set of processes was unchanged: no other one follows it.
     */
    mayTake: (feed: string, now: number): boolean => {
      const exceedsShare = counted().length >= share();
      if (exceedsShare && now - (freeSince.get(feed) ?? now) < leaseTtlMs) return false;
      led.set(feed, { kept: exceedsShare });
      return true;
    },
    /** Takes over a feed, even beyond the share, whose lease already belongs to this process or to its dead predecessor. */
    takeOwn: (feed: string) => void led.set(feed, { kept: false }),
    release: (feed: string): void => {
      led.delete(feed);
      surplus.delete(feed);
    },
    /** Returns whether to give back a feed, so that another process can take it. A decision is valid for half a round. */
    isSurplus: (feed: string, now: number): boolean => {
      if (now - decidedAt >= roundMs / 2) {
        surplus = findSurplus();
        decidedAt = now;
      }
      return surplus.has(feed);
    },
  };
}
