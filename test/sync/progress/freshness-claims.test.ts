import { describe, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { falseClaims, inventedRuns, missingRuns } from '../../e2e/programs/failovers/check-claims.js';
import { Listing } from '../../e2e/programs/failovers/listing.js';
import type { Snapshot } from '../../e2e/programs/failovers/snapshot.js';

/** The check of the failover program: it must see every kind of false claim, and none where there is none. */
describe('the check of freshness claims', () => {
  const MINUTE_MS = 60_000;

  test('finds nothing when everything claimed is stored', async () => {
    await withListing((listing, ids) => {
      expect(falseClaims(snapshot(ids), listing, 0)).toEqual([]);
      expect(missingRuns(snapshot(ids), listing, true)).toEqual([]);
    });
  });

  test('finds a run that is missing when the data is complete as of a later time', async () => {
    await withListing((listing, [lost = '', ...others]) => {
      const found = falseClaims(snapshot(others), listing, 0);
      expect(found).toHaveLength(1);
      expect(found[0]).toContain(`${lost} revision 1`);
      expect(missingRuns(snapshot(others), listing, false)).toHaveLength(1);
    });
  });

  test('finds nothing when a missing run was listed after the claim, or is in quarantine', async () => {
    await withListing((listing, [lost = '', ...others]) => {
      const early = { dataCompleteAsOf: Date.now() - 2 * MINUTE_MS, reconciledAsOf: Date.now() - 2 * MINUTE_MS };
      expect(falseClaims(snapshot(others, early), listing, MINUTE_MS)).toEqual([]);
      expect(falseClaims(snapshot(others, { quarantined: new Set([lost]) }), listing, 0)).toEqual([]);
    });
  });

  test('finds a late run that is missing when passes claim it, and only then', async () => {
    await withListing((listing, ids, emulator) => {
      const deliveredAt = Date.now() - 30 * MINUTE_MS;
      for (const late of emulator.appendRuns([{ deliveredAt }])) listing.note(late, true);
      const later = Date.now() + MINUTE_MS;
      const check = (claims: Partial<Snapshot>, windowMs = 0) =>
        falseClaims(snapshot(ids, { takenAt: later, dataCompleteAsOf: later, ...claims }), listing, windowMs);
      const backfill = { since: Number.NEGATIVE_INFINITY, until: later, begunAt: later };
      expect(check({})).toEqual([]);
      expect(check({ reconciledAsOf: later }, 10 * MINUTE_MS)).toEqual([]);
      expect(check({ reconciledAsOf: later }, 60 * MINUTE_MS)).toHaveLength(1);
      expect(check({ backfills: [backfill] })).toHaveLength(1);
      expect(check({ backfills: [{ ...backfill, begunAt: Date.now() - 40 * MINUTE_MS }] })).toEqual([]);
    });
  });

  test('finds an older revision when a newer one is claimed, and one that was never listed', async () => {
    await withListing((listing, ids, emulator) => {
      const [corrected = ''] = ids;
      listing.note(emulator.correct(corrected), false);
      const later = Date.now() + MINUTE_MS;
      const claims = { takenAt: later, dataCompleteAsOf: later };
      expect(falseClaims(snapshot(ids, claims), listing, 0)).toHaveLength(1);
      expect(inventedRuns(snapshot(ids), listing)).toEqual([]);
      expect(inventedRuns(snapshot(['unknown']), listing)).toEqual(['unknown revision 1']);
    });
  });
});

async function withListing(
  check: (listing: Listing, ids: readonly string[], emulator: Emulator) => void,
): Promise<void> {
  const emulator = await startEmulator();
  try {
    const runs = emulator.appendRuns(Array.from({ length: 3 }, () => ({ deliveredAt: Date.now() - 60_000 })));
    check(
      new Listing(emulator),
      runs.map(({ scanId }) => scanId),
      emulator,
    );
  } finally {
    await emulator.close();
  }
}

/** Everything stored at revision 1 and claimed up to now. */
function snapshot(ids: readonly string[], claims: Partial<Snapshot> = {}): Snapshot {
  return {
    takenAt: Date.now(),
    completeFrom: Number.NEGATIVE_INFINITY,
    dataCompleteAsOf: Date.now(),
    reconciledAsOf: null,
    backfills: [],
    revisions: new Map(ids.map((id) => [id, 1])),
    quarantined: new Set(),
    ...claims,
  };
}
