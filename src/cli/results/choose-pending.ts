import { CommandFailure } from '../context/exit.js';
import type { FeedAtWork } from '../context/with-feed.js';
import { printable } from '../terminal/table.js';

/**
 * The runs that are named; where none is, all pending ones of the feed but those that were given up. And the revision in
 * which each is stored.
 * @throws CommandFailure where one is not stored, or is another feed's
 */
export async function choosePending(named: readonly string[], { pending, feed }: FeedAtWork<never>) {
  const scanIds = named.length > 0 ? [...new Set(named)] : await pending.list(feed.name);
  const found = await pending.findScans(scanIds);
  const elsewhere = found.find((scan) => scan.feed !== feed.name);
  if (elsewhere !== undefined) {
    throw new CommandFailure(
      `the run ${printable(elsewhere.scanId)} belongs to the feed ${elsewhere.feed}: add --feed ${elsewhere.feed}`,
    );
  }
  const revisions: ReadonlyMap<string, number> = new Map(found.map(({ scanId, revision }) => [scanId, revision]));
  const missing = scanIds.filter((scanId) => !revisions.has(scanId));
  if (missing.length > 0)
    throw new CommandFailure(`there is no run ${missing.map(printable).join(', ')} in the database`);
  return { scanIds, revisions };
}
