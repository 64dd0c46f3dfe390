import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPageLimit, LARGEST_ENTRY_BYTES } from '../../../src/sync/page/page-limit.js';

const BUDGET = 1_000;

describe('a page', () => {
  /** A limit of 10 entries, of at most 200, after seven small pages of eight. */
  function beforeItGrows() {
    const limit = createPageLimit(200, BUDGET);
    for (const entries of [160, 80, 40, 20]) limit.tooLarge(entries, null);
    for (let pages = 0; pages < 7; pages += 1) limit.fitted(full(10, 250));
    expect(limit.entries).toBe(10);
    return limit;
  }
  const full = (entries: number, bytes: number) => ({ requested: entries, received: entries, moved: true, bytes });
  const notFull = (moved: boolean, bytes: number) => ({ requested: 10, received: 9, moved, bytes });

  it.each([
    ['is small', full(10, 250), 0],
    ['is not small', full(10, 251), 8],
    ['is at the end', notFull(false, 1), 1],
    ['is large and at the end', notFull(false, 900), 1],
    ['was shortened by filters', notFull(true, 1), 0],
    ['is large and was shortened by filters', notFull(true, 900), 8],
    ['was requested with a lower limit', full(5, 1), 1],
    ['was requested with a higher limit', full(20, 1), 0],
  ])('that %s: further small pages until the limit doubles', (_, page, more) => {
    const limit = beforeItGrows();
    limit.fitted(page);
    let pages = 0;
    for (; limit.entries === 10; pages += 1) limit.fitted(full(10, 1));
    expect(pages).toBe(more);
    expect(limit.entries).toBe(20);
  });

  it('that was requested before the limit was halved does not halve it again when it is too large', () => {
    const limit = createPageLimit(200, BUDGET);
    for (const entries of [200, 200]) limit.tooLarge(entries, null);
    expect(limit.entries).toBe(100);
  });

  it('that was requested before the limit doubled halves its own number of entries when it is too large', () => {
    const limit = createPageLimit(200, BUDGET);
    limit.tooLarge(100, null);
    expect(limit.entries).toBe(50);
  });
});

describe('the number of entries that a page is requested for', () => {
  it('is halved by each page that is too large, down to one, which may have the maximum size', () => {
    const reportedLimits: number[] = [];
    const limit = createPageLimit(200, BUDGET, (entries) => reportedLimits.push(entries));
    expect(limit.maxBytes).toBe(BUDGET);
    for (let tries = 0; tries < 9; tries += 1) limit.tooLarge(limit.entries, null);
    expect(reportedLimits).toEqual([100, 50, 25, 12, 6, 3, 1]);
    expect(limit.maxBytes).toBe(LARGEST_ENTRY_BYTES);
  });

  it('doubles after eight small pages in a row, up to the setting', () => {
    const limit = createPageLimit(150, BUDGET);
    const page = (bytes: number) =>
      limit.fitted({ requested: limit.entries, received: limit.entries, moved: true, bytes });
    limit.tooLarge(150, null);
    limit.tooLarge(75, null);
    for (let pages = 0; pages < 7; pages += 1) page(BUDGET / 4);
    expect(limit.entries).toBe(37);
    page(BUDGET / 4);
    expect(limit.entries).toBe(74);
    for (let pages = 0; pages < 7; pages += 1) page(10);
    page(BUDGET / 4 + 1); // the count starts over
    for (let pages = 0; pages < 7; pages += 1) page(10);
    expect(limit.entries).toBe(74);
    page(10);
    expect(limit.entries).toBe(148);
    for (let pages = 0; pages < 8; pages += 1) page(10);
    expect(limit.entries).toBe(150);
  });

  it('stays between one and the setting, whatever happens', () => {
    const event = fc.record({
      tooLarge: fc.boolean(),
      received: fc.nat(250),
      moved: fc.boolean(),
      bytes: fc.nat(2 * BUDGET),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.array(event), (most, events) => {
        const limit = createPageLimit(most, BUDGET);
        for (const { tooLarge, ...page } of events) {
          if (tooLarge) limit.tooLarge(limit.entries, null);
          else limit.fitted({ requested: limit.entries, ...page });
          expect(limit.entries).toBeGreaterThanOrEqual(1);
          expect(limit.entries).toBeLessThanOrEqual(most);
          expect(limit.maxBytes).toBe(limit.entries === 1 ? LARGEST_ENTRY_BYTES : BUDGET);
        }
      }),
    );
  });

  it('expects a quarter more bytes than the previous page had', () => {
    const limit = createPageLimit(200, BUDGET);
    limit.fitted({ requested: 200, received: 200, moved: true, bytes: 321 });
    expect(limit.expectedBytes).toBe(402);
  });
});
