import type { FeedStatus, Freshness, Stage } from '../sync/ports/index.js';

interface FeedStateOptions {
  /** Monotonic milliseconds: the clock of `Freshness.readAt` and of all times passed to the state. */
  readonly monotonic: () => number;
  readonly pollIntervalMs: number;
  readonly requestTimeoutMs: number;
}

/** Time after which an overdue retry counts as abandoned: the loop hangs, or the stage ended. Longer than any try. Milliseconds. */
const RETRY_OVERDUE_MS = 15 * 60_000;

/** A stage that fails: the kind of its last error, and the monotonic time of its next try. */
interface Failing {
  readonly kind: string;
  readonly retryAt: number;
}

export type FeedState = ReturnType<typeof createFeedState>;

/** Keeps the state of a feed as this process knows it, for metrics, logs and the status page: freshness, leader, failing stages. */
export function createFeedState({ monotonic, pollIntervalMs, requestTimeoutMs }: FeedStateOptions) {
  let freshness: Freshness | null = null;
  let status: FeedStatus | null = null;
  let leaderUntil: number | null = null;
  let endSeenAt: number | null = null;
  const failing = new Map<Stage, Failing>();
  const caughtUpForMs = 3 * pollIntervalMs + requestTimeoutMs;
  const isLeader = (at = monotonic()) => leaderUntil !== null && at < leaderUntil;

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
    /** Sets the monotonic time up to which this process holds the lease; null if it does not hold it. */
    setLeader(until: number | null): void {
      leaderUntil = until;
    },
    /** Sets the monotonic time of the latest poll if it saw the end of the feed, else null. */
    setCaughtUp(polledAt: number | null): void {
      endSeenAt = polledAt;
    },
    /** Sets how a stage fails; null if it no longer fails. */
    setFailing(stage: Stage, failure: Failing | null): void {
      if (failure === null) failing.delete(stage);
      else failing.set(stage, failure);
    },
    /** Returns the kind of the last error of a stage that fails and is retried, else null. */
    failureOf(stage: Stage): string | null {
      const failure = failing.get(stage);
      return failure !== undefined && monotonic() - failure.retryAt < RETRY_OVERDUE_MS ? failure.kind : null;
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
