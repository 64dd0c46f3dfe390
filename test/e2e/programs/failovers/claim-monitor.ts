import { setTimeout as sleep } from 'node:timers/promises';
import { falseClaims } from './check-claims.js';
import type { Cluster } from './cluster.js';
import type { FeedUnderTest } from './feeds.js';
import type { Listing } from './listing.js';
import type { PostgresServer } from './postgres-server.js';
import { type Snapshot, takeSnapshot } from './snapshot.js';

const PAUSE_MS = 150;

/** Checks the claims of every running server, including the standby, and collects the false ones. */
export class ClaimMonitor {
  /** Number of checks that found a feed. */
  count = 0;
  /** One text for each false claim about a run, from its first occurrence. */
  readonly falseClaims = new Map<string, string>();

  constructor(private readonly cluster: Cluster) {}

  /** Checks until the signal aborts. */
  async run(feeds: readonly FeedUnderTest[], listing: Listing, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const server of this.cluster.servers) {
        for (const feed of feeds) await this.check(server, feed, listing);
      }
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Returns null if the server is unavailable or the feed has not been started. */
  async check(server: PostgresServer, feed: FeedUnderTest, listing: Listing): Promise<Snapshot | null> {
    const snapshot = await takeSnapshot(server, feed.schema).catch(ignoreAway);
    if (snapshot === null) return null;
    this.count += 1;
    for (const text of falseClaims(snapshot, listing, feed.windowMs)) {
      const key = `${feed.schema} ${text.replace(/^.*?: /, '')}`;
      if (!this.falseClaims.has(key)) this.falseClaims.set(key, `false claim in ${feed.schema}: ${text}`);
    }
    return snapshot;
  }
}

/** 42P01, 3F: the schema does not exist yet. 57, 08, 53, 40 and an error without a SQLSTATE: the server is unavailable or busy. */
export function ignoreAway(error: unknown): null {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(42P01|3F|57|08|53|40)/.test(code)) throw error;
  return null;
}
