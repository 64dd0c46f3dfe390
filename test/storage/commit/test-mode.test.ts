import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type CheckedEntry, checkEntries, withPending } from '../../../src/sync/page/check-entries.js';
import { judgeResult } from '../../../src/sync/results/full-result.js';
import { storeResult } from '../../../src/sync/results/store-result.js';
import { concurrently } from '../../support/concurrent-commits.js';
import { entryJson, type Fields, pageJson } from '../../support/entries.js';
import { rawPage, rawRun } from '../../support/pages.js';
import { tables, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

const setup = useStore();
let scans = 0;
/** A separate scan id for each run. */
const newScan = () => `test-mode-${++scans}`;

interface Row {
  readonly revision: number;
  readonly mode: boolean;
  /** The revision that states it. */
  readonly of: number | null;
  readonly pending: string | null;
  readonly productive: boolean;
}

async function rowOf(scanId: string): Promise<Row | undefined> {
  const [row] = await setup.rows(sql<Row>`
    SELECT run.revision, run.partner_test_mode AS mode, test_mode_revision AS of, pending_reason AS pending, productive
    FROM ${tables.runs} AS run JOIN scanfeed.judged_runs USING (scan_id) WHERE scan_id = ${scanId}`);
  return row;
}

const counted = async (feed: string) =>
  (
    await setup.rows(sql<{ n: number }>`
      SELECT runs_with_earlier_test_mode::int AS n FROM scanfeed_reporting.sync_status WHERE feed = ${feed}`)
  )[0]?.n;

/** The answer of the single run. */
function answer(scanId: string, revision: number, over: Fields): CheckedEntry {
  const body = rawRun(entryJson({ scanId, revision, ...over }));
  const verdict = judgeResult({ scanId, revision, status: 'completed' }, body, false);
  if (verdict.kind !== 'loaded') throw new Error(verdict.reason);
  return verdict.entry;
}

interface Delivery {
  readonly revision: number;
  readonly partnerTestMode: boolean | undefined;
  /** Whether it shares the page of the delivery before it. */
  readonly joined: boolean;
}

const delivery = fc.record({
  revision: fc.integer({ min: 1, max: 3 }),
  partnerTestMode: fc.constantFrom(true, false, undefined),
  joined: fc.boolean(),
});

/** The rule, said independently: the highest revision that states it, and true among those of one revision. */
function expected(deliveries: readonly Delivery[]): Row {
  const revision = Math.max(...deliveries.map((given) => given.revision));
  const stating = deliveries.filter(({ partnerTestMode }) => partnerTestMode !== undefined);
  const of = stating.length === 0 ? null : Math.max(...stating.map((given) => given.revision));
  const mode = stating.some((given) => given.revision === of && given.partnerTestMode === true);
  const pending = mode && of !== revision ? 'test_mode_unknown' : null;
  return { revision, mode, of, pending, productive: !mode };
}

describe('the test mode of a run', () => {
  it('is that of the highest revision that states it, in any order, on one page or on several', async () => {
    const feed = await setup.takeFeed();
    await fc.assert(
      fc.asyncProperty(fc.array(delivery, { minLength: 1, maxLength: 6 }), async (deliveries) => {
        const scanId = newScan();
        const pages: string[][] = [];
        for (const { joined, ...fields } of deliveries) {
          const json = entryJson({ scanId, ...fields });
          if (joined) pages.at(-1)?.push(json);
          if (!joined || pages.length === 0) pages.push([json]);
        }
        for (const page of pages) {
          const { inserted, updated, unchanged, stale } = await feed.counts(page);
          expect(inserted + updated + unchanged + stale).toBe(page.length);
        }
        expect(await rowOf(scanId)).toEqual(expected(deliveries));
        const written = await setup.rows(sql`SELECT xmin, xmax FROM ${tables.runs} WHERE scan_id = ${scanId}`);
        for (const page of pages) await feed.commit(page);
        expect(await setup.rows(sql`SELECT xmin, xmax FROM ${tables.runs} WHERE scan_id = ${scanId}`)).toEqual(written);
      }),
      { numRuns: cases(30, 500) },
    );
  });

  it('is all that a lower revision adds to a run, of whichever feed', async () => {
    const [feed, other] = [await setup.takeFeed(), await setup.takeFeed({ name: 'lower' })];
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, revision: 2, partnerTestMode: undefined, partnerName: undefined })]);
    const others = async () =>
      setup.rows(sql`
        SELECT to_jsonb(run) - ARRAY['partner_test_mode', 'test_mode_revision', 'result_state', 'pending_reason', 'pending_since',
          'next_try_at', 'synced_at', 'change_seq'] AS run FROM ${tables.runs} AS run WHERE scan_id = ${scanId}`);
    const before = await others();
    const lower = {
      partnerTestMode: true,
      environment: 'test',
      data: { lower: 1 },
      markdown: 'lower',
      unknown: 'lower',
    };
    await other.commit([entryJson({ scanId, revision: 1, partnerName: 'lower', ...lower })]);
    expect(await rowOf(scanId)).toMatchObject({ revision: 2, mode: true, of: 1, pending: 'test_mode_unknown' });
    expect(await others()).toEqual(before);
  });

  it('stays true, and is counted, when the single run does not state it either', async () => {
    const feed = await setup.takeFeed({ name: 'counted' });
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, partnerTestMode: true })]);
    await feed.commit([entryJson({ scanId, revision: 2, partnerTestMode: undefined })]);
    expect(await counted('counted')).toBe(1);
    const asked = await storeResult(setup.store, feed.lease, answer(scanId, 2, { partnerTestMode: undefined }));
    expect(asked).toMatchObject({ kind: 'stored' });
    const settled = { revision: 2, mode: true, of: 1, pending: null, productive: false };
    expect(await rowOf(scanId)).toEqual(settled);
    expect(await counted('counted')).toBe(1);
    for (const partnerTestMode of [true, undefined]) {
      await feed.commit([entryJson({ scanId, revision: partnerTestMode ? 1 : 2, partnerTestMode })]);
      expect(await rowOf(scanId)).toEqual(settled);
    }
    await feed.commit([entryJson({ scanId, revision: 3, partnerTestMode: false })]);
    expect(await rowOf(scanId)).toMatchObject({ mode: false, of: 3, productive: true });
    expect(await counted('counted')).toBe(0);
  });

  it.each([true, false])('is %j when the single run says so', async (partnerTestMode) => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, partnerTestMode: true })]);
    await feed.commit([entryJson({ scanId, revision: 2, partnerTestMode: undefined })]);
    await storeResult(setup.store, feed.lease, answer(scanId, 2, { partnerTestMode }));
    expect(await rowOf(scanId)).toMatchObject({
      mode: partnerTestMode,
      of: 2,
      pending: null,
      productive: !partnerTestMode,
    });
  });

  it('stays true when asking failed once and the answer then contradicts the entry', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, partnerTestMode: true })]);
    await feed.commit([entryJson({ scanId, revision: 2, partnerTestMode: undefined })]);
    const failed = { scanId, revision: 2, reason: 'processing', nextTryInMs: 0 } as const;
    await setup.store.postponePending(feed.lease, [failed]);
    expect(await rowOf(scanId)).toMatchObject({ mode: true, of: 1, pending: 'test_mode_unknown' });
    const other = answer(scanId, 2, { partnerTestMode: undefined, data: { another: true } });
    expect(await storeResult(setup.store, feed.lease, other)).toMatchObject({ kind: 'stored' });
    expect(await rowOf(scanId)).toEqual({ revision: 2, mode: true, of: 1, pending: null, productive: false });
  });

  it('is not asked for again when the answer of a truncated entry leaves it out', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, partnerTestMode: true })]);
    const fields = { scanId, revision: 2, partnerTestMode: undefined };
    const [entry] = checkEntries(
      rawPage(pageJson([entryJson({ ...fields, data: undefined, resultTruncated: true })])),
    ).entries;
    const fallback = withPending(entry as CheckedEntry, 'invalid_result').accepted;
    const batch = [fallback, { ...answer(scanId, 2, fields).accepted, isAnswer: true }];
    await feed.commit([], { batch });
    expect(await rowOf(scanId)).toEqual({ revision: 2, mode: true, of: 1, pending: null, productive: false });
  });

  it('is not asked for when a failed run or a run without data leaves it out', async () => {
    const feed = await setup.takeFeed();
    const [failed, empty] = [newScan(), newScan()];
    for (const scanId of [failed, empty]) await feed.commit([entryJson({ scanId, partnerTestMode: true })]);
    const left = { revision: 2, partnerTestMode: undefined };
    await feed.commit([entryJson({ scanId: failed, ...left, status: 'failed', data: undefined, failureReason: 'x' })]);
    await feed.commit([entryJson({ scanId: empty, ...left, data: null })]);
    for (const scanId of [failed, empty])
      expect(await rowOf(scanId)).toMatchObject({ mode: true, of: 1, pending: null });
  });

  it('is kept when the run has expired and a later revision leaves it out', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const old = '2020-01-01T00:00:00Z';
    await feed.commit([entryJson({ scanId, partnerTestMode: true, deliveredAt: old, completedAt: old })]);
    await setup.operatorStore.deletedRuns.purgeRuns(365, 1_000);
    expect(await rowOf(scanId)).toBeUndefined();
    await feed.commit([entryJson({ scanId, revision: 2, partnerTestMode: undefined })]);
    expect(await rowOf(scanId)).toMatchObject({ revision: 2, mode: true, of: 1, productive: false });
  });

  it('is kept when two feeds write the revision that states it and the one that does not at the same moment', async () => {
    const [one, two] = [await setup.takeFeed({ name: 'one' }), await setup.takeFeed({ name: 'two' })];
    const [first, stale] = [newScan(), newScan()];
    const states = (scanId: string) => entryJson({ scanId, partnerTestMode: true });
    const leaves = (scanId: string, revision = 2) => entryJson({ scanId, revision, partnerTestMode: undefined });
    await concurrently(
      setup.database.sql,
      () => one.commit([states(first), leaves(stale, 3)]),
      () => two.commit([leaves(first), states(stale)]),
    );
    expect(await rowOf(first)).toMatchObject({ revision: 2, mode: true, of: 1, pending: 'test_mode_unknown' });
    expect(await rowOf(stale)).toMatchObject({ revision: 3, mode: true, of: 1, pending: 'test_mode_unknown' });
  });
});
