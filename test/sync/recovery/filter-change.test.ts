import { describe, expect, it } from 'vitest';
import type { FeedFilters } from '../../../src/sync/ports/index.js';
import { filterChange } from '../../../src/sync/recovery/filter-change.js';

const filters = (over: Partial<FeedFilters> = {}): FeedFilters => ({
  status: ['completed', 'failed'],
  environment: 'prod',
  documentType: null,
  ...over,
});

describe('a change of filters reports the runs that it hides and those that it leaves behind', () => {
  it.each([
    ['nothing', {}, {}, [], []],
    ['another status', { status: ['completed'] }, {}, [], ['failed runs']],
    ['a status less', {}, { status: ['completed'] }, ['failed runs'], []],
    ['all environments', {}, { environment: 'all' }, [], ['runs of the environment test']],
    [
      'another environment',
      {},
      { environment: 'test' },
      ['runs of the environment prod'],
      ['runs of the environment test'],
    ],
    ['one document type', {}, { documentType: 'rechnung' }, ['runs of other document types than rechnung'], []],
    ['every document type', { documentType: 'rechnung' }, {}, [], ['runs of other document types than rechnung']],
    [
      'another document type',
      { documentType: 'rechnung' },
      { documentType: 'gutschrift' },
      ['runs of the document type rechnung'],
      ['runs of the document type gutschrift'],
    ],
  ] as const)('%s', (_, before, now, hides, leavesBehind) => {
    expect(filterChange(filters(before as Partial<FeedFilters>), filters(now as Partial<FeedFilters>))).toEqual({
      hides,
      leavesBehind,
    });
  });
});
