import { expect, test } from 'vitest';
import { assertOwnSchema, type NewFeed } from '../../../src/daemon/feeds/assert-own-schema.js';
import type { SchemaContents } from '../../../src/storage/schema/schema-contents.js';
import { judgeResult } from '../../../src/sync/results/full-result.js';
import type { ResultLoader } from '../../../src/sync/results/resolve-truncated.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { rawRun } from '../../support/pages.js';

const submittedAt = '2026-03-01T08:00:00.123Z';
const FEED: NewFeed = { schema: 'acme', baseUrl: 'https://service.example/v1', hasMoved: false, hasOtherKey: false };
const STORED = { scanId: 'one', revision: 2, fileName: 'Rechnung "März".pdf', submittedAt: Date.parse(submittedAt) };
const OTHER = { ...STORED, scanId: 'two' };
const EMPTY: SchemaContents = { services: [], runs: [] };
const USED: SchemaContents = { services: [FEED.baseUrl], runs: [OTHER, STORED] };
const KNOWN: Fields = { scanId: 'one', revision: 2, fileName: STORED.fileName, submittedAt };

/** Checks the schema with the answers that the service gives with the feed's key; it knows no other run. */
async function check(
  feed: Partial<NewFeed> & { isKnown?: boolean },
  contents: SchemaContents,
  ...answers: readonly Fields[]
) {
  const { isKnown = false, ...given } = feed;
  const requested: string[] = [];
  const loader: ResultLoader = {
    loadResults: () => Promise.reject(new Error('a page is loaded')),
    loadOnce: async (run) => {
      requested.push(run.scanId);
      const answer = answers.find(({ scanId }) => scanId === run.scanId);
      const verdict =
        answer === undefined
          ? { kind: 'pending' as const, reason: 'not_found' as const }
          : judgeResult(run, rawRun(entryJson(answer)), false);
      return { ...verdict, release: () => {} };
    },
  };
  const stored = {
    hasFeed: async () => isKnown,
    readContents: async () => {
      requested.push('contents');
      return contents;
    },
  };
  await assertOwnSchema({ ...FEED, ...given }, stored, loader, new AbortController().signal);
  return requested;
}

const refused = (reason: string) => ({
  kind: 'another_organization',
  action: 'hold',
  message: expect.stringContaining(`the schema acme ${reason}`),
});

test('accepts a schema without runs', async () => {
  expect(await check({}, EMPTY)).toEqual(['contents']);
});

test('accepts a schema whose runs the service knows with the key, also after a correction', async () => {
  expect(await check({}, USED, KNOWN)).toEqual(['contents', 'two', 'one']);
  expect(await check({}, USED, { ...KNOWN, revision: 3, partnerTestMode: false })).toEqual(['contents', 'two', 'one']);
  expect(await check({ hasOtherKey: true }, USED, KNOWN)).toEqual(['contents', 'two', 'one']);
});

test('reads and asks nothing when the feed was started in the schema before, unless it has moved since', async () => {
  expect(await check({ isKnown: true }, USED)).toEqual([]);
  const moved = { isKnown: true, hasMoved: true };
  expect(await check(moved, USED, KNOWN)).toEqual(['contents', 'two', 'one']);
  await expect(check(moved, USED)).rejects.toMatchObject(refused('belongs to another organization'));
});

test('refuses a schema with runs of another service', async () => {
  const moved = { ...USED, services: [FEED.baseUrl, 'https://eu.service.example/v1'] };
  await expect(check({}, moved, KNOWN)).rejects.toMatchObject(refused('has runs of https://eu.service.example/v1'));
});

test('refuses a schema whose runs the service does not know with the key', async () => {
  await expect(check({}, USED)).rejects.toMatchObject(refused('belongs to another organization'));
});

test.each([
  ['file name', { fileName: 'other.pdf' }],
  ['time of submission', { submittedAt: '2026-03-01T08:00:01Z' }],
])('refuses a schema whose runs have another %s under the same ids', async (_, change) => {
  const answers = [change, { ...change, scanId: 'two' }].map((each) => ({ ...KNOWN, ...each }));
  await expect(check({}, USED, ...answers)).rejects.toMatchObject(refused('belongs to another organization'));
});

test('refuses a schema while its runs cannot be compared', async () => {
  const failure = check({}, USED, { ...KNOWN, revision: 1 });
  await expect(failure).rejects.toMatchObject(refused('has runs, but none of them'));
  await expect(failure).rejects.toThrow(/; `scanfeed doctor` shows whether the service responds and accepts the key\./);
});

test('refuses a schema without runs when an earlier feed with another key has it', async () => {
  await expect(check({ hasOtherKey: true }, EMPTY)).rejects.toMatchObject(refused('is also used by a feed'));
});
