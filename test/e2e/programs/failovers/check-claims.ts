import type { ListedVersion, Listing } from './listing.js';
import type { Snapshot } from './snapshot.js';

/** Listing times are known to the millisecond. */
const PRECISION_MS = 1;

/**
 * Compares what a feed claims with what it stored, both of one moment, and with what the service had listed by then.
 * Pure.
 * @param windowMs how far back its passes read; Infinity: they read everything
 * @returns one text for each run that a claim covers and that is missing
 */
export function falseClaims(snapshot: Snapshot, listing: Listing, windowMs: number): readonly string[] {
  const found: string[] = [];
  for (const version of listing.at(snapshot.takenAt)) {
    if (isStored(version, snapshot)) continue;
    const claims = claimsOn(version, snapshot, windowMs);
    if (claims.length > 0) found.push(`${claims.join(', ')}: ${nameOf(version)} ${foundInstead(version, snapshot)}`);
  }
  return found;
}

/** Returns one text for each run of the feed that is not stored at its highest revision, late ones on request. Pure. */
export function missingRuns(snapshot: Snapshot, listing: Listing, lateOnes: boolean): readonly string[] {
  return [...listing.at(snapshot.takenAt)]
    .filter((version) => (lateOnes || !version.late) && !isStored(version, snapshot))
    .map((version) => `${nameOf(version)} ${foundInstead(version, snapshot)}`);
}

/** Returns one text for each stored revision that the feed never listed. Pure. */
export function inventedRuns({ revisions }: Snapshot, listing: Listing): readonly string[] {
  return [...revisions]
    .filter(([scanId, revision]) => !listing.has(scanId, revision))
    .map(([scanId, revision]) => `${scanId} revision ${revision}`);
}

function isStored({ scanId, revision }: ListedVersion, { revisions, quarantined }: Snapshot): boolean {
  return (revisions.get(scanId) ?? 0) >= revision || quarantined.has(scanId);
}

/** The claims by which a version must be stored. */
function claimsOn(version: ListedVersion, snapshot: Snapshot, windowMs: number): readonly string[] {
  const { deliveredAt, listedAt, late } = version;
  const { completeFrom, dataCompleteAsOf, reconciledAsOf, backfills } = snapshot;
  const listedBy = (time: number | null): time is number =>
    time !== null && Math.max(listedAt, deliveredAt) + PRECISION_MS <= time;
  const claims: string[] = [];
  // Placed behind a cursor, it was not listed yet when the cursor passed: passes find it (promise 10, limits).
  if (!late && listedBy(dataCompleteAsOf) && deliveredAt >= (completeFrom ?? Number.POSITIVE_INFINITY))
    claims.push(`complete as of ${new Date(dataCompleteAsOf).toISOString()}`);
  if (listedBy(reconciledAsOf) && deliveredAt >= reconciledAsOf - windowMs)
    claims.push(`reconciled as of ${new Date(reconciledAsOf).toISOString()}`);
  for (const { since, until, begunAt } of backfills) {
    if (listedBy(begunAt) && deliveredAt >= since && deliveredAt <= until)
      claims.push(`backfilled on request of ${new Date(begunAt).toISOString()}`);
  }
  return claims;
}

const nameOf = ({ scanId, revision, deliveredAt }: ListedVersion): string =>
  `${scanId} revision ${revision}, delivered at ${new Date(deliveredAt).toISOString()},`;

function foundInstead({ scanId }: ListedVersion, { revisions }: Snapshot): string {
  const found = revisions.get(scanId);
  return found === undefined ? 'is missing' : `is stored as revision ${found}`;
}
