import type {
  FeedIdentity,
  FeedStatus,
  LeaseGrant,
  LeaseRenewal,
  LeaseStore,
  ProcessStore,
  StatusStore,
} from '../ports/index.js';
import { createCheckIn } from './check-in.js';
import { createDueRenewals } from './due-renewals.js';
import { MAX_ROUND_INTERVAL_MS, type ProcessLeases } from './process-leases.js';
import { createRounds, type RoundAnswer } from './rounds.js';

export type LeaseRounds = ReturnType<typeof createLeaseRounds>;

/** A lease that is still held. `extended`: it was not renewed, because a commit has just extended it. */
type HeldLease = LeaseRenewal | 'extended';

/** A schema with the leases of its feeds. */
export interface LeaseSchema {
  readonly name: string;
  readonly store: LeaseStore & ProcessStore & StatusStore;
  /** Resolves once the schema is usable; rejects while it is not. */
  ready(signal: AbortSignal): Promise<void>;
  /** Returns whether this release can still use the schema. */
  isUsable(): Promise<boolean>;
}

/**
 * The leases of all feeds that a process follows in a schema: each round is at most one statement for all feeds that wait for it. Processes
 * that follow many feeds share them evenly.
 */
export function createLeaseRounds(process: ProcessLeases, { name: schema, store, ready, isUsable }: LeaseSchema) {
  const { clock, holder, isDead, leaseTtlMs, intervalMs, share, announcementSchemas, limitTaking, waitForRow } =
    process;
  const followed = new Set<string>();
  const { checkIn, checkOut, checkOutPredecessor } = createCheckIn(schema, store, process);
  const checks = createRounds<string, FeedStatus>({
    clock,
    intervalMs,
    backsOff: true,
    ask: async (feeds, signal) => {
      await ready(signal);
      await checkIn();
      const askedAt = clock.monotonic();
      const statuses = await store.readStatuses(feeds);
      return feeds.map((feed) => {
        const status = statuses.get(feed) as FeedStatus;
        share.recordCheck(feed, status.leaseHolder === null, askedAt);
        return status;
      });
    },
  });
  /**
   * Renews leases, and returns the renewals of those that are still held. If a newer release has taken over the schema, all are lost:
   * without them, the feeds wait until this release can use it again. A leader renews its leases at least every 10 s, so it notices.
   */
  const renewHeld = async (leases: readonly LeaseGrant[]): Promise<ReadonlyMap<string, LeaseRenewal>> =>
    leases.length > 0 && (await isUsable()) ? store.renewLeases(leases, leaseTtlMs) : new Map();
  const dueRenewals = createDueRenewals(leaseTtlMs, intervalMs, Math.min(leaseTtlMs, MAX_ROUND_INTERVAL_MS));
  /** Renews the leases that are due. Null: lost. */
  const renewDue = async (leases: readonly LeaseGrant[]): Promise<readonly (HeldLease | null)[]> => {
    const askedAt = clock.monotonic();
    const due = new Set(leases.filter(({ feed }) => dueRenewals.isDue(feed, askedAt)));
    try {
      const renewed = await renewHeld([...due]);
      for (const feed of renewed.keys()) dueRenewals.renewed(feed, askedAt);
      return leases.map((lease) => (due.has(lease) ? (renewed.get(lease.feed) ?? null) : 'extended'));
    } catch (error) {
      // The round fails for all of them. In the next one all are renewed, so that each feed reports the recovery.
      for (const { feed } of leases) dueRenewals.forget(feed);
      throw error;
    }
  };
  const renewals = createRounds<LeaseGrant, HeldLease | null>({
    clock,
    intervalMs,
    backsOff: false,
    ask: async (leases) => {
      // A process that cannot check in keeps its leases: leading matters more than sharing.
      void checkIn().catch(() => {});
      const held = await renewDue(leases);
      const now = clock.monotonic();
      return held.map((lease, index) => (share.isSurplus(leases[index]?.feed ?? '', now) ? null : lease));
    },
  });
  return {
    /** Time between two rounds, milliseconds. */
    intervalMs,
    /** Duration of a lease from its last renewal, milliseconds. */
    ttlMs: leaseTtlMs,
    /**
     * Returns whether this process may take a lease from its holder: itself, perhaps by an attempt whose answer was lost, or a dead
     * predecessor.
     * @param starting whether the process has just started. Later it may not: two containers of a pod, each with its own process ids,
     * would take the lease from each other again and again.
     */
    mayReplace: (leaseHolder: string, starting: boolean): boolean =>
      leaseHolder === holder || (starting && isDead(leaseHolder)),
    /** Follows a feed: from now on it counts towards the feeds that the process shares. */
    follow: (feed: string): void => {
      followed.add(feed);
      announcementSchemas.add(schema);
      share.follow(feed);
    },
    /** Stops following a feed. After its last feed, the process is no longer announced in the schema. Never rejects. */
    unfollow: async (feed: string): Promise<void> => {
      followed.delete(feed);
      share.unfollow(feed);
      if (followed.size > 0) return;
      announcementSchemas.delete(schema);
      await checkOut();
    },
    /**
     * Waits for the next check of a feed without a lease, which reads its status. Resolves with null when the signal aborts; rejects
     * only because of a bug. A feed that has just begun to wait for its lease is checked immediately.
     */
    checkStatus: checks.next,
    /**
     * Takes a lease. Resolves with null if that is not possible now: the process already leads its share of feeds, another process
     * holds the lease, or a commit locks the feed. Also rejects when the signal aborts while it waits for its turn. `askedAt`: monotonic
     * time.
     */
    take: (feed: FeedIdentity, replaced: string | null, signal: AbortSignal) =>
      limitTaking(
        async () => {
          const askedAt = clock.monotonic();
          if (replaced !== null) {
            await checkOutPredecessor(replaced);
            share.takeOwn(feed.name);
          } else if (!share.mayTake(feed.name, askedAt)) return null;
          let lease: LeaseGrant | null = null;
          try {
            lease = await store.acquireLease(feed, holder, leaseTtlMs, replaced);
          } finally {
            if (lease === null) share.release(feed.name);
          }
          if (lease === null) return null;
          share.recordCheck(feed.name, false, askedAt);
          dueRenewals.forget(feed.name);
          return { askedAt, lease };
        },
        { signal },
      ),
    /**
     * Waits for the next round of renewals. The answer is null if the lease was lost or is to be given back to another process.
     * Resolves with null when the signal aborts; rejects only because of a bug.
     */
    renew: async (lease: LeaseGrant, signal: AbortSignal): Promise<RoundAnswer<HeldLease | null> | null> => {
      const round = await renewals.next(lease, signal);
      if (round === null || 'error' in round || round.answer === null || round.answer === 'extended') return round;
      if (round.answer.heldForMs >= leaseTtlMs / 2) return round;
      // A commit has prevented the extension in earlier rounds. The lease might expire before the next one, so wait for the commit.
      const askedAt = clock.monotonic();
      const renewal = waitForRow(() => store.renewLease(lease, leaseTtlMs));
      if (renewal === null) return round;
      try {
        return { askedAt, answer: await renewal };
      } catch (error) {
        return { error, pauseMs: intervalMs };
      }
    },
    /** Returns whether a lease is still held, and renews it if it is. Rejects if the store failed. */
    isHeld: async (lease: LeaseGrant): Promise<boolean> => (await renewHeld([lease])).has(lease.feed),
    /** Records that a commit has extended a lease. `sentAt`: monotonic time. */
    extended: ({ feed }: LeaseGrant, sentAt: number) => dueRenewals.extended(feed, sentAt),
    /** Releases a lease, so that another process need not wait for it to expire. Never rejects: otherwise it expires. */
    release: async (lease: LeaseGrant): Promise<void> => {
      share.release(lease.feed);
      dueRenewals.forget(lease.feed);
      await store.releaseLease(lease).catch(() => {});
    },
  };
}
