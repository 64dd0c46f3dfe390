import { describe, expect, it } from 'vitest';
import { isStoredInFull, needsFullResult } from '../../src/sync/full-result.js';
import type { FeedRun, StoredResult } from '../../src/sync/ports.js';

const run = (over: Partial<FeedRun> = {}): FeedRun => ({
  scanId: 'scan-1',
  revision: 2,
  status: 'completed',
  hasData: false,
  hasMarkdown: false,
  truncated: true,
  deliveredAt: null,
  ...over,
});

const stored = (over: Partial<StoredResult> = {}): StoredResult => ({
  scanId: 'scan-1',
  revision: 2,
  complete: true,
  hasMarkdown: true,
  ...over,
});

describe('a truncated entry', () => {
  it.each([
    ['lacks its data', run(), false, true],
    ['has its data and wants no markdown', run({ hasData: true }), false, false],
    ['has its data and wants markdown', run({ hasData: true }), true, true],
    ['has both', run({ hasData: true, hasMarkdown: true }), true, false],
    ['failed, so that it has no data to lack', run({ status: 'failed' }), false, false],
    ['failed, and wants markdown', run({ status: 'failed' }), true, true],
    ['is not truncated at all', run({ truncated: false }), true, false],
  ])('that %s', (_what, entry, markdown, needs) => {
    expect(needsFullResult(entry, markdown)).toBe(needs);
  });
});

describe('nothing is downloaded for what the database holds', () => {
  it.each([
    ['in full', stored(), true, true],
    ['without the markdown that is wanted', stored({ hasMarkdown: false }), true, false],
    ['without markdown that nobody wants', stored({ hasMarkdown: false }), false, true],
    ['as pending', stored({ complete: false }), false, false],
    ['at an older revision', stored({ revision: 1 }), false, false],
    ['at a newer revision, even as pending', stored({ revision: 3, complete: false }), true, true],
    ['not at all', undefined, false, false],
  ])('%s', (_what, known, markdown, held) => {
    expect(isStoredInFull(run(), known, markdown)).toBe(held);
  });
});
