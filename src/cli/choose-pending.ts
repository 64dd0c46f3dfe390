import { findScans, listPendingScans } from '../storage/pending-now.js';
import { CommandFailure } from './exit.js';
import { printable } from './table.js';
import type { FeedAtWork } from './with-feed.js';

/** Runs to be worked on, and the revision in which each is stored. */
export interface ChosenScans {
  readonly scanIds: readonly string[];
  readonly revisions: ReadonlyMap<string, number>;
}

/**
 * The runs that are named; where none is, all pending ones of the feed but those that were given up.
 * @throws CommandFailure where one is not stored, or is another feed's
 */
export async function choosePending(named: readonly string[], work: FeedAtWork<never>): Promise<ChosenScans> {
  const { database, tables, feed } = work;
  const scanIds = named.length > 0 ? [...new Set(named)] : await listPendingScans(database.sql, tables, feed.name);
  return { scanIds, revisions: await requireScans(work, scanIds) };
}

/** The revisions stored, by scan id. */
async function requireScans(
  { database, tables, feed }: FeedAtWork<never>,
  scanIds: readonly string[],
): Promise<Map<string, number>> {
  const found = await findScans(database.sql, tables, scanIds);
  const elsewhere = found.find((scan) => scan.feed !== feed.name);
  if (elsewhere !== undefined) {
    throw new CommandFailure(
      `the run ${printable(elsewhere.scanId)} belongs to the feed ${elsewhere.feed}: add --feed ${elsewhere.feed}`,
    );
  }
  const revisions = new Map(found.map(({ scanId, revision }) => [scanId, revision]));
  const missing = scanIds.filter((scanId) => !revisions.has(scanId));
  if (missing.length > 0)
    throw new CommandFailure(`there is no run ${missing.map(printable).join(', ')} in the database`);
  return revisions;
}
