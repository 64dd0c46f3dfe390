import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPageLimit, halved, LARGEST_ENTRY_BYTES, regrown } from '../../src/sync/page-limit.js';

const BUDGET = 1_000;

describe('the number of entries that a page is asked for', () => {
  it('is halved by each page that is too large, down to one, which may have as much as can be stored', () => {
    const told: number[] = [];
    const limit = createPageLimit(200, BUDGET, (entries) => told.push(entries));
    expect(limit.maxBytes).toBe(BUDGET);
    for (let tries = 0; tries < 9; tries += 1) limit.tooLarge(limit.entries);
    expect(told).toEqual([100, 50, 25, 12, 6, 3, 1]);
    expect(limit.maxBytes).toBe(LARGEST_ENTRY_BYTES);
  });

  it('is halved once by two readers that met the same limit', () => {
    expect(halved(halved({ entries: 200, easy: 0 }, 200), 200)).toEqual({ entries: 100, easy: 0 });
  });

  it('doubles after eight full pages in a row that would have fitted four times, up to what is set', () => {
    const limit = createPageLimit(150, BUDGET);
    const page = (bytes: number) => limit.fitted({ asked: limit.entries, came: limit.entries, bytes });
    limit.tooLarge(150);
    limit.tooLarge(75);
    for (let pages = 0; pages < 7; pages += 1) page(BUDGET / 4);
    expect(limit.entries).toBe(37);
    page(BUDGET / 4);
    expect(limit.entries).toBe(74);
    for (let pages = 0; pages < 7; pages += 1) page(10);
    page(BUDGET / 4 + 1); // begins anew
    for (let pages = 0; pages < 7; pages += 1) page(10);
    expect(limit.entries).toBe(74);
    page(10);
    expect(limit.entries).toBe(148);
    for (let pages = 0; pages < 8; pages += 1) page(10);
    expect(limit.entries).toBe(150);
  });

  it('does not grow by pages that are not full, nor by those of a higher limit', () => {
    const state = { entries: 10, easy: 7 };
    expect(regrown(state, { asked: 10, came: 9, bytes: 1 }, 200, BUDGET)).toEqual(state);
    expect(regrown(state, { asked: 20, came: 20, bytes: 1 }, 200, BUDGET)).toEqual({ entries: 20, easy: 0 });
    expect(regrown(state, { asked: 5, came: 5, bytes: 1 }, 200, BUDGET)).toEqual(state);
  });

  it('stays between one and what is set, whatever comes', () => {
    const event = fc.record({ tooLarge: fc.boolean(), came: fc.nat(250), bytes: fc.nat(2 * BUDGET) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.array(event), (most, events) => {
        const limit = createPageLimit(most, BUDGET);
        for (const { tooLarge, came, bytes } of events) {
          if (tooLarge) limit.tooLarge(limit.entries);
          else limit.fitted({ asked: limit.entries, came, bytes });
          expect(limit.entries).toBeGreaterThanOrEqual(1);
          expect(limit.entries).toBeLessThanOrEqual(most);
          expect(limit.maxBytes).toBe(limit.entries === 1 ? LARGEST_ENTRY_BYTES : BUDGET);
        }
      }),
    );
  });

  it('is expected to bring as many bytes as the page before', () => {
    const limit = createPageLimit(200, BUDGET);
    limit.fitted({ asked: 200, came: 200, bytes: 321 });
    expect(limit.expectedBytes).toBe(321);
  });
});
