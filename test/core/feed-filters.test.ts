import { describe, expect, it } from 'vitest';
import {
  type FeedFilters,
  FILTER_NAMES,
  filterParameters,
  hidesNothing,
  runsOnlyIn,
  UNFILTERED,
} from '../../src/core/feed-filters.js';
import { NARROW, NARROW_FILTERS } from '../support/filters.js';

const filters = (over: Partial<FeedFilters> = {}): FeedFilters => ({ ...UNFILTERED, environment: 'prod', ...over });

describe('a change of filters hides runs and leaves others behind', () => {
  it.each([
    ['nothing', {}, {}, [], []],
    ['another status', { status: ['completed'] }, {}, [], ['runs with status failed']],
    ['a status less', {}, { status: ['completed'] }, ['runs with status failed'], []],
    ['all environments', {}, { environment: 'all' }, [], ['runs with environment test']],
    [
      'another environment',
      {},
      { environment: 'test' },
      ['runs with environment prod'],
      ['runs with environment test'],
    ],
    ['one document type', {}, { documentType: 'rechnung' }, ['runs with a documentType other than rechnung'], []],
    ['every document type', { documentType: 'rechnung' }, {}, [], ['runs with a documentType other than rechnung']],
    [
      'another document type',
      { documentType: 'rechnung' },
      { documentType: 'gutschrift' },
      ['runs with documentType rechnung'],
      ['runs with documentType gutschrift'],
    ],
    [
      'all filters, in their order',
      {},
      { status: ['failed'], environment: 'test', documentType: 'rechnung' },
      ['runs with status completed', 'runs with environment prod', 'runs with a documentType other than rechnung'],
      ['runs with environment test'],
    ],
  ] as const)('%s', (_, before, now, hidden, leftBehind) => {
    expect(runsOnlyIn(filters(before), filters(now))).toEqual(hidden);
    expect(runsOnlyIn(filters(now), filters(before))).toEqual(leftBehind);
  });
});

describe('each filter', () => {
  it('hides nothing at its widest setting, whatever the order of a list', () => {
    expect(hidesNothing(UNFILTERED)).toBe(true);
    expect(hidesNothing({ ...UNFILTERED, status: ['failed', 'completed'] })).toBe(true);
  });

  it.each(NARROW_FILTERS)('hides something when it is narrow: %s', (_, narrow) => {
    expect(hidesNothing(narrow)).toBe(false);
    expect(runsOnlyIn(UNFILTERED, narrow)).toHaveLength(1);
    expect(runsOnlyIn(narrow, UNFILTERED)).toEqual([]);
  });

  it.each(FILTER_NAMES)('hid nothing when an earlier version stored the filters without %s', (name) => {
    const { [name]: _, ...before } = UNFILTERED;
    expect(runsOnlyIn(before as FeedFilters, UNFILTERED)).toEqual([]);
    expect(runsOnlyIn(UNFILTERED, before as FeedFilters)).toEqual([]);
  });

  it.each(FILTER_NAMES)('is sent as the query parameter %s', (name) => {
    for (const setting of NARROW[name]) {
      expect(filterParameters({ ...UNFILTERED, [name]: setting })).toContainEqual([name, String(setting)]);
    }
  });
});
