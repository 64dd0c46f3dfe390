import type { LeaderContext } from '../context.js';
import type { LeaseGrant, StoredFeed } from '../ports/index.js';
import type { UnfinishedWork } from './unfinished-work.js';

/**
 * Follows what is stored of the feed while this process leads it: its figures, its unfinished passes, and whether another process has
 * taken it. Resolves when the lease is lost or the feed is to be given back, or when the signal aborts. While the database is unreachable
 * it keeps trying: if no other process took the feed, the lease is still held, and if one did, the fence rejects the commits of this
 * process.
 */
export async function keepLease(
  lease: LeaseGrant,
  { leases, observer, recovery }: LeaderContext,
  work: UnfinishedWork,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const read = await leases.nextRead(signal);
    if (read === null) return;
    if ('error' in read) {
      observer.failed('lease', read.error, read.pauseMs);
      if (!read.isUsable) return; // a newer release has taken over the schema
      continue;
    }
    recovery.answered();
    observer.recovered('lease');
    const feed = read.feeds.get(lease.feed) as StoredFeed;
    if (feed.holder !== lease.holder || feed.epoch !== lease.epoch) return;
    if (leases.process.share.isSurplus(lease.feed, read.askedAt)) return;
    observer.status(feed.status);
    work.update(feed);
  }
}
