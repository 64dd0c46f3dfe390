import type { Clock } from '../../core/clock.js';
import type { FeedIdentity, FeedStatus, FeedStore, LeaseGrant, LeaseRenewal } from '../ports/index.js';
import { limitConcurrency } from '../retry/limit-concurrency.js';
import { createRounds, type RoundAnswer } from './rounds.js';

/** Number of attempts to renew a lease within its time to live. A holder may miss two of them. */
const ATTEMPTS_PER_TTL = 3;
/** Maximum interval of rounds, milliseconds: a requested pass waits for a renewal, and the lease may last an hour. */
const MAX_INTERVAL_MS = 10_000;
/** Maximum number of leases that are taken at once, so that connections are left for other statements. */
const TAKEN_AT_ONCE = 8;

/** The leases of all feeds that a process follows in a schema: each round is one statement for all feeds that wait for it. */
export interface LeaseRounds {
  /** Time between two rounds, milliseconds. */
  readonly intervalMs: number;
  /**
   * Waits for the next look at a feed without a lease. Resolves with null when the signal aborts; never rejects.
   * @param atOnce whether the feed has just begun to wait for its lease, so that the look happens at once
   */
  look(feed: string, signal: AbortSignal, atOnce: boolean): Promise<RoundAnswer<FeedStatus> | null>;
  /** Takes a lease like the store. Rejects also when the signal aborts before its turn. `askedAt`: monotonic time. */
  take(
    feed: FeedIdentity,
    replaced: string | null,
    signal: AbortSignal,
  ): Promise<{ readonly askedAt: number; readonly lease: LeaseGrant | null }>;
  /** Waits for the next renewal of a lease: null if it was lost. Resolves with null when the signal aborts; never rejects. */
  renew(lease: LeaseGrant, signal: AbortSignal): Promise<RoundAnswer<LeaseRenewal | null> | null>;
}

export interface LeaseRoundsParts {
  readonly store: Pick<FeedStore, 'acquireLease' | 'renewLease' | 'renewLeases' | 'readStatuses'>;
  readonly clock: Clock;
  /** Identifies this process among those that may hold a lease. */
  readonly holder: string;
  readonly leaseTtlMs: number;
  /** Resolves once the schema is usable; rejects while it is not. */
  ready(signal: AbortSignal): Promise<void>;
}

export function createLeaseRounds({ store, clock, holder, leaseTtlMs, ready }: LeaseRoundsParts): LeaseRounds {
  const intervalMs = Math.min(leaseTtlMs / ATTEMPTS_PER_TTL, MAX_INTERVAL_MS);
  const limited = limitConcurrency(TAKEN_AT_ONCE);
  const looks = createRounds<string, FeedStatus>({
    clock,
    intervalMs,
    backsOff: true,
    ask: async (feeds, signal) => {
      await ready(signal);
      const statuses = await store.readStatuses(feeds);
      return feeds.map((feed) => statuses.get(feed) as FeedStatus);
    },
  });
  const renewals = createRounds<LeaseGrant, LeaseRenewal | null>({
    clock,
    intervalMs,
    backsOff: false,
    ask: async (leases) => {
      const [first] = leases;
      if (first !== undefined && leases.length === 1) return [await store.renewLease(first, leaseTtlMs)];
      const renewed = await store.renewLeases(leases, leaseTtlMs);
      return leases.map(({ feed }) => renewed.get(feed) ?? null);
    },
  });
  return {
    intervalMs,
    look: looks.next,
    take: (feed, replaced, signal) =>
      limited(
        async () => {
          const askedAt = clock.monotonic();
          return { askedAt, lease: await store.acquireLease(feed, holder, leaseTtlMs, replaced) };
        },
        { signal },
      ),
    renew: async (lease, signal) => {
      const round = await renewals.next(lease, signal);
      if (round === null || 'error' in round || round.answer === null) return round;
      if (round.answer.heldForMs >= leaseTtlMs / 2) return round;
      // In two rounds the feed was being committed to. In a third one the lease might expire, so this one waits for the commit.
      const askedAt = clock.monotonic();
      try {
        return { askedAt, answer: await store.renewLease(lease, leaseTtlMs) };
      } catch (error) {
        return { error, pauseMs: intervalMs };
      }
    },
  };
}
