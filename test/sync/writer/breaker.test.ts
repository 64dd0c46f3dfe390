import { describe, expect, it } from 'vitest';
import { checkEntries, refusedEntry } from '../../../src/sync/page/check-entries.js';
import type { QuarantineEntry } from '../../../src/sync/ports/index.js';
import { Breaker, pageQuality } from '../../../src/sync/writer/breaker.js';
import { entryJson, pageJson, raw } from '../../support/entries.js';
import { rawPage } from '../../support/pages.js';

/** The number of a page's entries, and those that are unusable. */
type Page = readonly [entries: number, unusable: readonly QuarantineEntry[]];

/** Returns entries that are all unusable for the same reason. */
function unusable(count: number, reason = 'status'): readonly QuarantineEntry[] {
  const entry = { scanId: 'scan', revision: 1, reason, detail: reason, payload: Buffer.of(), state: 'open' } as const;
  return Array<QuarantineEntry>(count).fill(entry);
}

const page = (entries: number, bad: number): Page => [entries, unusable(bad)];

/** Whether the last page is held, after the others were committed. */
function holds(...pages: readonly Page[]): boolean {
  const breaker = new Breaker();
  for (const earlier of pages.slice(0, -1)) breaker.committed(pageQuality(...earlier));
  try {
    breaker.check(pageQuality(...(pages.at(-1) as Page)));
    return false;
  } catch (error) {
    expect(error).toMatchObject({ kind: 'mostly_bad' });
    return true;
  }
}

describe('the feed is held', () => {
  it.each([
    ['half of one full page is bad', [page(200, 100)]],
    ['half of exactly a hundred entries is bad', [page(100, 50)]],
    ['small pages add up to a hundred entries', [page(40, 40), page(40, 40), page(20, 20)]],
    ['a bad page outweighs two better ones', [page(50, 10), page(50, 10), page(200, 140)]],
    ['pages are so small that a hundred entries take more than three of them', Array(5).fill(page(20, 11))],
    ['each page has one entry', Array(100).fill(page(1, 1))],
    ['only the last three pages count', [page(200, 0), page(50, 0), page(50, 0), page(100, 100)]],
    ['pages without entries do not push others out', [page(60, 60), page(0, 0), page(0, 0), page(0, 0), page(60, 60)]],
  ])('when %s', (_when, pages) => {
    expect(holds(...pages)).toBe(true);
  });
});

describe('the feed continues', () => {
  it.each([
    ['one entry less than half is bad', [page(200, 99)]],
    ['there are less than a hundred entries', [page(99, 99)]],
    ['good pages outweigh a bad one', [page(200, 0), page(200, 0), page(200, 200)]],
    ['the bad ones lie further back than three pages', [page(90, 90), page(200, 0), page(200, 0), page(9, 9)]],
    [
      'the bad ones are further back than a hundred entries of small pages',
      [...Array(99).fill(page(1, 1)), ...Array(60).fill(page(1, 0)), page(1, 1)],
    ],
    ['the page itself is sound, whatever came before it', [page(49, 49), page(50, 50), page(1, 0)]],
    ['the page is empty', [page(60, 60), page(39, 39), page(0, 0)]],
  ])('when %s', (_when, pages) => {
    expect(holds(...pages)).toBe(false);
  });

  it('when a held page is received without bad entries, since checks have no effect', () => {
    const breaker = new Breaker();
    for (let tries = 0; tries < 5; tries += 1)
      expect(() => breaker.check(pageQuality(...page(200, 200)))).toThrow(/Ask the operators/);
    expect(() => breaker.check(pageQuality(...page(200, 0)))).not.toThrow();
    breaker.committed(pageQuality(...page(200, 0)));
    expect(() => breaker.check(pageQuality(...page(200, 199)))).not.toThrow();
  });
});

describe('the message', () => {
  const breaker = new Breaker();
  breaker.committed(pageQuality(100, unusable(20)));
  const thrown = (() => {
    try {
      breaker.check(pageQuality(200, [...unusable(60, 'revision'), ...unusable(100)]));
    } catch (error) {
      return error as Error;
    }
    return null;
  })();

  it('has the number of bad entries, the reasons and the action', () => {
    expect(thrown?.message).toMatch(/^180 of the last 300 entries .*\(status 120, revision 60\).*Ask the operators/);
  });

  it('names the constraint and does not blame the service when a constraint of the database refuses entries', () => {
    const checked = checkEntries(rawPage(pageJson([entryJson()])));
    const refused = checked.entries.map((entry) => refusedEntry(entry, { constraint: 'partner_known' }));
    expect(() => new Breaker().check(pageQuality(200, Array(150).fill(refused).flat()))).toThrow(
      /^150 of .*\(constraint partner_known of the database 150\): a constraint of the database refuses them.*Drop the/,
    );
  });

  it('has the action hold', () => {
    expect(thrown).toMatchObject({ kind: 'mostly_bad', action: 'hold', name: 'MostlyBad' });
  });
});

describe('the count of unusable entries', () => {
  const held = (quarantine: readonly QuarantineEntry[]) => () => new Breaker().check(pageQuality(100, quarantine));

  it('has entries that would be quarantined, not repaired ones', () => {
    const { quarantine } = checkEntries(
      rawPage(
        pageJson([
          entryJson({ scanId: 'repaired', error: raw('"\\u0000"') }),
          entryJson({ status: 'archived' }),
          entryJson({ status: 'lost' }),
          'null',
        ]),
      ),
    );
    const many = Array(20).fill(quarantine).flat();
    expect(held(many)).toThrow(/^60 of the last 100 .*\(status 40, not_an_object 20\)/);
    expect(held(many.filter(({ state }) => state === 'repaired'))).not.toThrow();
  });

  it('has entries that PostgreSQL refused', () => {
    const { entries } = checkEntries(rawPage(pageJson([entryJson()])));
    const [refused] = entries.map((entry) => refusedEntry(entry));
    expect(held(Array(50).fill(refused))).toThrow(/^50 of the last 100 .*\(refused 50\)/);
  });
});
