import { describe, expect, it } from 'vitest';
import type { FeedRun, StoredResult } from '../../../src/sync/ports/index.js';
import { isStoredInFull, judgeResult, needsFullResult } from '../../../src/sync/results/full-result.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { rawRun } from '../../support/pages.js';

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
  markdownKnown: true,
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

describe('results that are stored are not downloaded', () => {
  it.each([
    ['in full', stored(), true, true],
    ['without the markdown that is wanted', stored({ markdownKnown: false }), true, false],
    ['without markdown that nobody wants', stored({ markdownKnown: false }), false, true],
    ['as pending', stored({ complete: false }), false, false],
    ['at an older revision', stored({ revision: 1 }), false, false],
    ['at a newer revision, even as pending', stored({ revision: 3, complete: false }), true, true],
    ['not at all', undefined, false, false],
  ])('%s', (_what, known, markdown, held) => {
    expect(isStoredInFull(run(), known, markdown)).toBe(held);
  });
});

describe('a full answer without markdown', () => {
  const judge = (over: Fields, markdown: boolean) =>
    judgeResult({ scanId: 'scan-1', revision: 2 }, rawRun(entryJson({ revision: 2, ...over })), markdown);

  it.each([
    ['that was asked for with markdown says that there is none', {}, true, true],
    ['of a failed run says so too', { status: 'failed', data: null, failureReason: 'ocr_failed' }, true, true],
    ['of a higher revision says so of that one', { revision: 3 }, true, true],
    ['whose markdown is null says so too', { markdown: null }, true, true],
    ['whose entry was truncated says so too', { resultTruncated: true }, true, true],
    ['that was asked for without markdown says nothing of it', {}, false, false],
  ] as const)('%s', (_what, over, markdown, markdownAbsent) => {
    expect(judge(over, markdown)).toMatchObject({ kind: 'loaded', entry: { accepted: { markdownAbsent } } });
  });

  it('is not marked when it has markdown', () => {
    expect(judge({ markdown: '# Rechnung' }, true)).toMatchObject({ entry: { accepted: { markdownAbsent: false } } });
  });

  it('is no result without its data', () => {
    const answer = { data: undefined, markdown: '# Rechnung', resultTruncated: true };
    expect(judge(answer, true)).toEqual({ kind: 'pending', reason: 'still_truncated' });
  });
});

describe('a single-run answer', () => {
  const judge = (answer: Fields) => judgeResult({ scanId: 'scan-1', revision: 2 }, rawRun(entryJson(answer)), false);

  it('is a result when it has the requested scan and revision', () => {
    expect(judge({ scanId: 'scan-1', revision: 2 })).toMatchObject({ kind: 'loaded' });
  });

  it('is not a result when it has another scan', () => {
    expect(judge({ scanId: 'scan-2', revision: 2 })).toEqual({ kind: 'pending', reason: 'invalid_result' });
  });

  it('is not a result when it has an older revision', () => {
    expect(judge({ scanId: 'scan-1', revision: 1 })).toEqual({ kind: 'pending', reason: 'older_revision' });
  });
});
