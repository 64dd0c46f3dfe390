import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPageLimit, growLimit, halveLimit, LARGEST_ENTRY_BYTES } from '../../../src/sync/page/page-limit.js';

const BUDGET = 1_000;

describe('a limit', () => {
  it.each([
    // entries and smallPages pages before, entries of the page that was too large, after
    [{ entries: 200, smallPages: 7 }, 200, { entries: 100, smallPages: 0 }],
    [{ entries: 25, smallPages: 0 }, 25, { entries: 12, smallPages: 0 }],
    [{ entries: 2, smallPages: 0 }, 2, { entries: 1, smallPages: 0 }],
    [{ entries: 1, smallPages: 3 }, 1, { entries: 1, smallPages: 0 }],
    [{ entries: 100, smallPages: 5 }, 200, { entries: 100, smallPages: 5 }], // requested for before the limit was halved
    [{ entries: 100, smallPages: 5 }, 50, { entries: 25, smallPages: 0 }], // requested for before it doubled
  ])('is halved from %o by a page of %i to %o', (before, entries, after) => {
    expect(halveLimit(before, entries)).toEqual(after);
  });

  const full = (entries: number, bytes: number) => ({ requested: entries, received: entries, moved: true, bytes });
  const notFull = (moved: boolean, bytes: number) => ({ requested: 10, received: 9, moved, bytes });

  it.each([
    ['one more that is smallPages', { entries: 10, smallPages: 0 }, full(10, 250), { entries: 10, smallPages: 1 }],
    ['the eighth that is smallPages', { entries: 10, smallPages: 7 }, full(10, 250), { entries: 20, smallPages: 0 }],
    ['the eighth, below what is set', { entries: 120, smallPages: 7 }, full(120, 1), { entries: 200, smallPages: 0 }],
    ['one that is not smallPages', { entries: 10, smallPages: 7 }, full(10, 251), { entries: 10, smallPages: 0 }],
    ['one at the end', { entries: 10, smallPages: 7 }, notFull(false, 1), { entries: 10, smallPages: 7 }],
    ['a large one at the end', { entries: 10, smallPages: 7 }, notFull(false, 900), { entries: 10, smallPages: 7 }],
    ['one that filters shortened', { entries: 10, smallPages: 7 }, notFull(true, 1), { entries: 20, smallPages: 0 }],
    [
      'a large one that filters shortened',
      { entries: 10, smallPages: 7 },
      notFull(true, 900),
      { entries: 10, smallPages: 0 },
    ],
    ['one of a lower limit', { entries: 10, smallPages: 7 }, full(5, 1), { entries: 10, smallPages: 7 }],
    ['one of a higher limit', { entries: 10, smallPages: 7 }, full(20, 1), { entries: 20, smallPages: 0 }],
    ['one at what is set', { entries: 200, smallPages: 0 }, full(200, 1), { entries: 200, smallPages: 0 }],
  ])('meets %s', (_, before, page, after) => {
    expect(growLimit(before, page, 200, BUDGET)).toEqual(after);
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
