import { readPresentLease } from '../storage/feed.js';
import type { LeaseGrant } from '../sync/ports.js';
import { CommandFailure, EXIT } from './exit.js';
import type { FeedAtWork } from './with-feed.js';

/** A feed changes hands now and then; this often in a row it does not. */
const TRIES = 20;

/**
 * Writes beside whoever holds the feed: under its epoch as it is now, and again when the feed has changed hands in
 * between. The daemon is not disturbed, and a write of a moment ago cannot slip under the next epoch.
 * @param write resolves to null when it was fenced
 */
export async function underPresentEpoch<T>(
  { database, tables, feed }: Pick<FeedAtWork<never>, 'database' | 'tables' | 'feed'>,
  write: (lease: LeaseGrant) => Promise<T | null>,
): Promise<T> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const lease = await readPresentLease(database.sql, tables, feed.name);
    if (lease === null) throw new CommandFailure(`the feed ${feed.name} has been removed`);
    const written = await write(lease);
    if (written !== null) return written;
  }
  throw new CommandFailure(`the feed ${feed.name} keeps changing hands; try again later`, EXIT.tryAgain);
}
