import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { batchOf, type CheckedEntry, checkEntries, withPending } from '../../../src/sync/page/check-entries.js';
import { judgeResult } from '../../../src/sync/results/full-result.js';
import { storeResult } from '../../../src/sync/results/store-result.js';
import { entryJson, type Fields, pageJson, raw } from '../../support/entries.js';
import { rawPage, rawRun } from '../../support/pages.js';
import { runRow, type TestFeed, tables, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

const setup = useStore();
let scans = 0;
/** A separate scan id for each row. */
const newScan = () => `union-${++scans}`;

/** All columns except those that identify the row, or say when and by what it was written. */
async function columns(scanId: string): Promise<Record<string, unknown>> {
  const [row] = await setup.rows(runRow(scanId));
  if (row === undefined) throw new Error(`${scanId} is not stored`);
  const {
    scan_id,
    stored_by,
    pending_since,
    pending_for,
    next_try_at,
    first_synced_at,
    synced_at,
    change_seq,
    ...rest
  } = row;
  return rest;
}

/** A feed entry whose result has to be loaded. */
function entryOf(fields: Fields): CheckedEntry {
  const checked = checkEntries(rawPage(pageJson([entryJson({ data: undefined, ...fields, resultTruncated: true })])));
  const [entry] = checked.entries;
  if (entry === undefined) throw new Error('unusable');
  return withPending(entry, 'invalid_result');
}

function answerTo({ accepted: { run } }: CheckedEntry, fields: Fields): CheckedEntry {
  const verdict = judgeResult(run, rawRun(entryJson({ markdown: '# Rechnung', ...fields })), true);
  if (verdict.kind !== 'loaded') throw new Error(verdict.reason);
  return verdict.entry;
}

type Sources = { readonly entry: Fields; readonly answer: Fields };

/** The answer arrives before the page is committed. */
async function beforeItsPage(feed: TestFeed, { entry, answer }: Sources): Promise<string> {
  const scanId = newScan();
  const delivered = entryOf({ ...entry, scanId });
  const result = answerTo(delivered, { ...answer, scanId });
  await feed.commit([], { batch: batchOf([{ ...delivered, result }]) });
  return scanId;
}

/** The page is committed, and its result is loaded afterwards. */
async function inTheBackground(feed: TestFeed, { entry, answer }: Sources): Promise<string> {
  const scanId = newScan();
  const pending = entryOf({ ...entry, scanId });
  await feed.commit([], { batch: batchOf([pending]) });
  await storeResult(setup.store, feed.lease, answerTo(pending, { ...answer, scanId }));
  return scanId;
}

/** The run is loaded on its own, and the feed lists it afterwards (`scanfeed get --save`). */
async function beforeItsEntry(feed: TestFeed, { entry, answer }: Sources): Promise<string> {
  const scanId = newScan();
  const pending = entryOf({ ...entry, scanId });
  await storeResult(setup.store, feed.lease, answerTo(pending, { ...answer, scanId }));
  await feed.commit([], { batch: batchOf([pending]) });
  return scanId;
}

/** Optional fields (interface 2.1), with two values each. */
const OPTIONAL = {
  partnerName: ['Muster GmbH', 'Beispiel AG'],
  partnerTestMode: [true, false],
  ocrConfidence: [raw('0.97'), 'high'],
  submittedAt: ['2026-01-02T08:00:00.123456Z', '2026-01-02T09:00:00+01:00'],
  completedAt: ['2026-01-02T08:00:30Z', 'gestern'],
  deliveredAt: ['2026-01-02T08:00:31Z', '2026-01-02T08:00:32Z'],
  data: [{ betrag: raw('1.10'), nummer: raw('12345678901234567890') }, { betrag: raw('2.20') }],
  markdown: ['# Rechnung', '# Other'],
  neu: [raw('1.10'), 'text'],
  auch: [[raw('1.0')], { tief: null }],
} as const;

const choice = fc.constantFrom<'first' | 'second' | 'null' | 'absent'>('first', 'second', 'null', 'absent');
const chosenOf = (values: readonly unknown[], chosen: string) =>
  chosen === 'absent' ? undefined : chosen === 'null' ? null : values[chosen === 'first' ? 0 : 1];

const outcomeOf = (failed: boolean, chosen: string): Fields =>
  failed
    ? {
        status: 'failed',
        failureReason: chosenOf(['unreadable', 'empty'], chosen),
        error: chosenOf(['Unlesbar.', 'Leer.'], chosen),
      }
    : { status: 'completed' };

const fieldsOf = (values: readonly (readonly unknown[])[], chosen: readonly string[]): Fields =>
  Object.fromEntries(
    Object.keys(OPTIONAL).map((name, index) => [name, chosenOf(values[index] ?? [], chosen[index] ?? '')]),
  );

/** An entry and an answer of one revision. @param agreeing all fields that both have are equal */
const sources = (agreeing: boolean): fc.Arbitrary<Sources> => {
  const side = fc.record({
    optional: fc.array(choice, { minLength: 10, maxLength: 10 }),
    slug: fc.constantFrom('rechnung', null),
    name: fc.constantFrom('Rechnung', null),
    version: choice,
    outcome: choice,
    environment: fc.constantFrom('prod', 'prod', 'test'),
  });
  return fc.record({ failed: fc.boolean(), entry: side, answer: side }).map(({ failed, entry, answer }) => {
    const values = Object.values(OPTIONAL).map(([one, two]) => (agreeing ? [one, one] : [one, two]));
    const build = (
      { optional, slug, name, version, outcome, environment }: typeof entry,
      isAnswer: boolean,
    ): Fields => {
      const fields = fieldsOf(values, optional);
      const same = agreeing && outcome === 'second' ? 'first' : outcome;
      return {
        ...fields,
        documentType: { slug, name, version: chosenOf(agreeing ? [1, 1] : [1, 2], version) },
        environment: agreeing ? 'prod' : environment,
        ...outcomeOf(failed, same),
        // An answer without data is not a result; an entry without data needs its result loaded.
        data: failed ? undefined : isAnswer ? (fields.data ?? values[6]?.[0]) : fields.data,
      };
    };
    return { entry: build(entry, false), answer: build(answer, true) };
  });
};

describe('a row', () => {
  it('is the union of entry and answer when they agree, whichever came first', async () => {
    const feed = await setup.takeFeed();
    await fc.assert(
      fc.asyncProperty(sources(true), async (given) => {
        const before = await columns(await beforeItsPage(feed, given));
        expect(await columns(await inTheBackground(feed, given))).toEqual(before);
        expect(await columns(await beforeItsEntry(feed, given))).toEqual(before);
        for (const [field, column] of [
          ['partnerName', 'partner_name'],
          ['submittedAt', 'submitted_at'],
          ['markdown', 'markdown'],
          ['error', 'error'],
        ] as const) {
          expect(before[column] === null).toBe((given.entry[field] ?? given.answer[field] ?? null) === null);
        }
        expect(before.partner_test_mode).toBe([given.entry, given.answer].some((of) => of.partnerTestMode === true));
      }),
      { numRuns: cases(20, 150) },
    );
  });

  it('is the same when the answer arrives before its page commits and when it arrives later, with any contents', async () => {
    const feed = await setup.takeFeed();
    await fc.assert(
      fc.asyncProperty(sources(false), async (given) => {
        expect(await columns(await inTheBackground(feed, given))).toEqual(
          await columns(await beforeItsPage(feed, given)),
        );
      }),
      { numRuns: cases(20, 150) },
    );
  });

  it('keeps what the entry says when the answer leaves out every optional field', async () => {
    const feed = await setup.takeFeed();
    const entry = {
      partnerTestMode: true,
      neu: raw('1.10'),
      documentType: { slug: 'rechnung', name: 'Rechnung', version: 2 },
    };
    const left = ['partnerName', 'partnerTestMode', 'ocrConfidence', 'submittedAt', 'completedAt', 'deliveredAt'];
    const answer = {
      ...Object.fromEntries(left.map((name) => [name, undefined])),
      documentType: { slug: null, name: null },
    };
    for (const timing of [beforeItsPage, inTheBackground]) {
      const scanId = await timing(feed, { entry, answer });
      expect(await columns(scanId)).toMatchObject({
        partner_name: 'Muster GmbH',
        partner_test_mode: true,
        ocr_confidence: 0.97,
        document_type_slug: 'rechnung',
        document_type_name: 'Rechnung',
        submitted_at: new Date('2026-01-02T08:00:00Z'),
        completed_at: new Date('2026-01-02T08:00:30Z'),
        delivered_at: new Date('2026-01-02T08:00:31Z'),
        data: '{"betrag": 1.10, "nummer": 12345678901234567890}',
        markdown: '# Rechnung',
        extra: '{"neu": 1.10, "documentType": {"version": 2}}',
        result_state: 'complete',
      });
      const productive = sql`SELECT FROM scanfeed_reporting.productive_runs WHERE scan_id = ${scanId}`;
      expect(await setup.rows(productive)).toEqual([]);
    }
  });

  it('stays pending when the answer contradicts what its entry says', async () => {
    const feed = await setup.takeFeed();
    const given = { entry: { data: { a: 1 } }, answer: { data: { a: 2 } } };
    for (const timing of [beforeItsPage, inTheBackground]) {
      expect(await columns(await timing(feed, given))).toMatchObject({
        data: '{"a": 1}',
        markdown: null,
        result_state: 'pending',
        pending_reason: 'invalid_result',
      });
    }
  });

  it('is pending again when it had no data and the feed calls the result truncated', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, data: 'no object' })]);
    expect(await setup.store.findStored([scanId])).toMatchObject([{ complete: false }]);
    await feed.commit([], { batch: batchOf([entryOf({ scanId })]) });
    expect(await columns(scanId)).toMatchObject({ result_state: 'pending', data: null });
    await feed.commit([entryJson({ scanId, data: { a: 1 } })]);
    expect(await columns(scanId)).toMatchObject({ result_state: 'complete', data: '{"a": 1}', pending_reason: null });
  });
});

const changeSeq = async (scanId: string) =>
  (await setup.rows(sql<{ n: string }>`SELECT change_seq::text AS n FROM ${tables.runs} WHERE scan_id = ${scanId}`))[0]
    ?.n;

describe('the same revision with other steering fields', () => {
  it.each([
    ['partnerTestMode', [false, true], 'partner_test_mode', true],
    ['partnerTestMode', [true, false], 'partner_test_mode', true],
    ['environment', ['prod', 'test'], 'environment', 'test'],
    ['environment', ['test', 'prod'], 'environment', 'test'],
  ] as const)(
    'stores the safe value and counts a conflict when %s is first and later %j',
    async (field, [first, later], column, safe) => {
      const feed = await setup.takeFeed();
      const [apart, together] = [newScan(), newScan()];
      await feed.commit([entryJson({ scanId: apart, [field]: first })]);
      const before = await changeSeq(apart);
      const changes = first !== safe;
      expect(await feed.counts([entryJson({ scanId: apart, [field]: later })])).toMatchObject({
        conflicts: 1,
        updated: Number(changes),
        filled: Number(changes),
        unchanged: Number(!changes),
        stored: [],
      });
      expect((await changeSeq(apart)) !== before).toBe(changes);
      const both = [first, later].map((value) => entryJson({ scanId: together, [field]: value }));
      expect(await feed.counts(both)).toMatchObject({ inserted: 1, unchanged: 1, conflicts: 1 });
      for (const scanId of [apart, together]) expect(await columns(scanId)).toMatchObject({ [column]: safe });
    },
  );

  it('counts no conflict when the test mode is left out', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, partnerTestMode: true })]);
    expect(await feed.counts([entryJson({ scanId, partnerTestMode: undefined })])).toMatchObject({
      conflicts: 0,
      unchanged: 1,
    });
    expect(await columns(scanId)).toMatchObject({ partner_test_mode: true });
  });
});

describe('entries of one scan and revision', () => {
  it('leave the same row and conflicts when they are listed on one page and on pages of their own', async () => {
    const feed = await setup.takeFeed();
    const entry = fc.record({
      data: fc.constantFrom({ a: 1 }, { a: 2 }, undefined),
      markdown: fc.constantFrom('# one', '# two', undefined),
      partnerName: fc.constantFrom('Muster GmbH', null),
      partnerTestMode: fc.constantFrom(true, false, undefined),
      documentType: fc.constantFrom({ slug: 'rechnung', name: null }, { slug: null, name: 'Rechnung' }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 2, maxLength: 5 }), async (entries) => {
        const [apart, together] = [newScan(), newScan()];
        let conflicts = 0;
        for (const fields of entries) {
          conflicts += (await feed.counts([entryJson({ ...fields, scanId: apart })])).conflicts;
        }
        const page = entries.map((fields) => entryJson({ ...fields, scanId: together }));
        expect(await feed.counts(page)).toMatchObject({ inserted: 1, unchanged: entries.length - 1, conflicts });
        expect(await columns(together)).toEqual(await columns(apart));
      }),
      { numRuns: cases(12, 100) },
    );
  });

  it('add no markdown to the first when their data differs', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const page = [entryJson({ scanId, data: { a: 1 } }), entryJson({ scanId, data: { a: 2 }, markdown: '# two' })];
    expect(await feed.counts(page)).toMatchObject({ inserted: 1, conflicts: 1 });
    expect(await columns(scanId)).toMatchObject({ data: '{"a": 1}', markdown: null });
  });
});
