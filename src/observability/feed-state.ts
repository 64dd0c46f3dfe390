import type { FeedStatus, Freshness } from '../sync/ports/index.js';

interface FeedStateOptions {
  /** Monotonic milliseconds: the clock of `Freshness.readAt` and of all times passed to the state. */
  readonly monotonic: () => number;
  readonly pollIntervalMs: number;
  readonly requestTimeoutMs: number;
}

export type FeedState = ReturnType<typeof createFeedState>;

/** Keeps the state of a feed as this process knows it, for metrics, logs and the status page: freshness and leader. */
export function createFeedState({ monotonic, pollIntervalMs, requestTimeoutMs }: FeedStateOptions) {
  let freshness: Freshness | null = null;
  let status: FeedStatus | null = null;
  let aliveUntil: (() => number) | null = null;
  let endSeenAt: number | null = null;
  const caughtUpForMs = 3 * pollIntervalMs + requestTimeoutMs;
  const isLeader = (at = monotonic()) => aliveUntil !== null && at < aliveUntil();

  /** Keeps the one that was read last: commits and checks of the database may report out of order. */
  const setFreshness = (read: Freshness) => {
    if (freshness === null || read.readAt >= freshness.readAt) freshness = read;
  };
  /** A later commit reported up to when the data is complete. The last poll and the last commit are not older. */
  const atLeast = (time: Date | null): Date | null => {
    const asOf = freshness?.dataCompleteAsOf ?? null;
    return asOf === null || (time !== null && time > asOf) ? time : asOf;
  };

  return {
    setFreshness,
    setStatus(read: FeedStatus): void {
      status = read;
      setFreshness(read);
    },
    /** Sets the function that returns the monotonic time up to which this process leads the feed; null if it does not. */
    setLeader(until: (() => number) | null): void {
      aliveUntil = until;
    },
    /** Sets the monotonic time of the latest poll if it saw the end of the feed, else null. */
    setCaughtUp(polledAt: number | null): void {
      endSeenAt = polledAt;
    },
    freshness: () => freshness,
    status: (): FeedStatus | null =>
      status && { ...status, lastPollAt: atLeast(status.lastPollAt), lastCommitAt: atLeast(status.lastCommitAt) },
    isLeader,
    isCaughtUp: () => isLeader() && endSeenAt !== null && monotonic() - endSeenAt < caughtUpForMs,
    /** Returns the lag at a monotonic time: the lag when it was read plus the time since then. Null while unknown. */
    lagSeconds: (at = monotonic()) =>
      freshness === null || freshness.lagMs === null
        ? null
        : Math.max(0, freshness.lagMs + at - freshness.readAt) / 1000,
  };
}
