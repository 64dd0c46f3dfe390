import { describe, expect, it } from 'vitest';
import { createFreshnessClaims } from '../../../src/sync/page/freshness-claims.js';
import type { CheckedPage } from '../../../src/sync/page/page.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { checkedPage } from '../../support/pages.js';

/** Lead of the clock of delivery times over the monotonic one, milliseconds. */
const AHEAD_MS = 1_767_000_000_000;

/** A page with entries of revision 1 that were delivered at these monotonic times; the last one is proven. */
function page(polledAt: number, delivered: readonly number[] = []): CheckedPage {
  const times = delivered.map((at) => new Date(at + AHEAD_MS));
  const entries = times.map((time) => entryJson({ scanId: `at-${time.getTime()}`, deliveredAt: time.toISOString() }));
  return {
    ...checkedPage(pageJson(entries), { at: { cursor: 'at', since: null }, polledAt }),
    provenUpTo: times.at(-1) ?? null,
    monotonicTimeOf: () => Number.POSITIVE_INFINITY, // another clock, which allows everything
    possibleDelivery: (deliveredAt) => deliveredAt,
  };
}

describe('what a page before the end of the feed claims', () => {
  const reading = () => {
    const claims = createFreshnessClaims();
    return { claims, claimed: (next: CheckedPage) => claims.next(next).completeUpTo };
  };

  it('is nothing before the first end', () => {
    const { claimed } = reading();
    expect(claimed(page(1_000, [100, 200]))).toBeNull();
    expect(claimed(page(2_000, [300]))).toBeNull();
  });

  it('is the end plus the time between the first entry after it and the last one', () => {
    const { claims, claimed } = reading();
    claimed(page(1_000, [100]));
    claims.ended(page(2_000));
    expect(claimed(page(10_000, [2_500, 4_000]))).toBe(2_000 + 1_500 - 1);
    expect(claimed(page(11_000, [9_000]))).toBe(2_000 + 6_500 - 1);
  });

  it('leaves out entries that are listed again when cursors go back', () => {
    const { claims, claimed } = reading();
    claimed(page(1_000, [500, 900]));
    claims.ended(page(2_000));
    expect(claimed(page(10_000, [500, 900]))).toBeNull();
    expect(claimed(page(11_000, [2_500, 4_000]))).toBe(2_000 + 1_500 - 1);
  });

  it('leaves out an entry that was in the future when it was listed before', () => {
    const { claims, claimed } = reading();
    claimed({ ...page(1_000, [500, 900]), provenUpTo: null });
    claims.ended(page(2_000));
    expect(claimed(page(10_000, [500, 900]))).toBeNull();
  });

  it('is nothing if cursors go back after a first poll at the end', () => {
    const { claims, claimed } = reading();
    claims.ended(page(2_000));
    expect(claimed(page(10_000, [500, 900]))).toBeNull();
    expect(claimed(page(11_000, [2_500, 4_000]))).toBeNull();
  });

  it('is nothing if the end was found with since, which may have hidden the first entry after it', () => {
    const { claims, claimed } = reading();
    claimed(page(1_000, [500]));
    claims.ended({ ...page(2_000), at: { cursor: null, since: new Date(400 + AHEAD_MS) } });
    expect(claimed(page(10_000, [900, 4_000]))).toBeNull();
    claimed(page(11_000));
    claims.ended({ ...page(11_000), at: { cursor: null, since: null } });
    expect(claimed(page(20_000, [11_500, 12_000]))).toBe(11_000 + 500 - 1);
  });

  it('is nothing if the next page does not begin at the end', () => {
    const { claims, claimed } = reading();
    claimed(page(1_000, [500]));
    claims.ended(page(2_000));
    claims.moved();
    expect(claimed(page(10_000, [900, 2_500]))).toBeNull();
  });

  it('is never later than its poll', () => {
    const { claims, claimed } = reading();
    claimed(page(1_000, [100]));
    claims.ended(page(2_000));
    expect(claimed(page(4_000, [1_000, 5_000]))).toBe(4_000 - 1); // the first one was listed late
    expect(claimed(page(5_000, [5_500]))).toBe(4_500 - 1);
  });
});
