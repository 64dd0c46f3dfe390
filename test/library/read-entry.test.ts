import { describe, expect, it } from 'vitest';
import { OPTIONAL_FIELDS, type OptionalField } from '../../src/core/run-fields.js';
import type { CompletedEntry, FailedEntry } from '../../src/library/entry-types.js';
import { isUnusable, readEntry, readSingleRun } from '../../src/library/read-entry.js';
import { checkEntry } from '../../src/sync/page/check-entry.js';
import { entryFields as fieldsWithText } from '../support/entries.js';

const entryFields = (over: Readonly<Record<string, unknown>> = {}) =>
  fieldsWithText({ data: { betrag: 1.5 }, ...over });

/** Values of optional fields, by the type of the field. */
const VALUES = {
  code: 'x',
  text: 'x',
  'long text': 'x',
  number: 1 as number,
  time: '2026-01-02T08:00:00Z',
  object: { a: 1 } as Readonly<Record<string, unknown>>,
};
type StateOf<Field> = Field extends { readonly state: infer State } ? State : 'completed' | 'failed';
/** The optional fields of a run in a state. The compiler reports those that the types of the library lack. */
type FieldsOf<State> = {
  readonly [Field in OptionalField as State extends StateOf<Field> ? Field['field'] : never]:
    | (typeof VALUES)[Field['type']]
    | null;
};

describe('an entry', () => {
  it('has every optional field of its state', () => {
    const given = entryFields(Object.fromEntries(OPTIONAL_FIELDS.map(({ field, type }) => [field, VALUES[type]])));
    const completed: FieldsOf<'completed'> = readEntry(given) as CompletedEntry;
    const failed: FieldsOf<'failed'> = readEntry({ ...given, status: 'failed' }) as FailedEntry;
    for (const { field, type, state } of OPTIONAL_FIELDS) {
      if (state !== 'failed') expect(completed).toHaveProperty(field, VALUES[type]);
      if (state !== 'completed') expect(failed).toHaveProperty(field, VALUES[type]);
    }
  });

  it('has every field of its state, null where the service sent none, and unknown fields in one place', () => {
    const { partnerName: _, ...given } = entryFields({
      documentType: { slug: 'rechnung', name: 'Rechnung', version: 3 },
      futureField: { a: 1 },
    });
    expect(readEntry(given)).toEqual({
      scanId: 'scan-1',
      revision: 1,
      status: 'completed',
      environment: 'prod',
      documentType: { slug: 'rechnung', name: 'Rechnung' },
      fileName: 'rechnung-1.pdf',
      partnerName: null,
      partnerTestMode: false,
      ocrConfidence: 0.97,
      data: { betrag: 1.5 },
      submittedAt: '2026-01-02T08:00:00.000Z',
      completedAt: '2026-01-02T08:00:30.000Z',
      deliveredAt: '2026-01-02T08:00:31.000Z',
      resultTruncated: false,
      markdown: null,
      extra: { futureField: { a: 1 }, documentType: { version: 3 } },
    });
  });

  it('keeps an unknown field of any name', () => {
    const given: unknown = JSON.parse(`{"__proto__":{"a":1},${JSON.stringify(entryFields()).slice(1)}`);
    expect(JSON.stringify(readEntry(given))).toContain('"extra":{"__proto__":{"a":1}}');
  });

  it('has a reason and no data if it failed', () => {
    const failed = entryFields({ status: 'failed', data: null, failureReason: 'ocr_failed', error: 'Fehler' });
    const entry = readEntry(failed);
    expect(entry).toMatchObject({ status: 'failed', failureReason: 'ocr_failed', error: 'Fehler', extra: {} });
    expect(entry).not.toHaveProperty('data');
    expect(readEntry({ ...failed, data: { late: true } })).toMatchObject({ extra: { data: { late: true } } });
    expect(readEntry(entryFields({ error: 'Fehler' }))).toMatchObject({ extra: { error: 'Fehler' } });
  });

  it.each<[string, Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>]>([
    ['a partnerTestMode of null', { partnerTestMode: null }, { partnerTestMode: null }],
    ['a partnerTestMode that is a text', { partnerTestMode: 'nein' }, { partnerTestMode: true }],
    ['a zone without minutes', { deliveredAt: '2026-01-02T09:00:31+01' }, { deliveredAt: '2026-01-02T09:00:31+01:00' }],
    ['a time without a zone', { submittedAt: '2026-01-02T08:00' }, { submittedAt: '2026-01-02T08:00Z' }],
    ['a missing name', { documentType: { slug: 'rechnung' } }, { documentType: { slug: 'rechnung', name: null } }],
    ['a missing slug', { documentType: {} }, { documentType: { slug: null, name: null } }],
    ['a resultTruncated of null', { resultTruncated: null }, { resultTruncated: false }],
    ['a resultTruncated that is a text', { resultTruncated: 'ja' }, { resultTruncated: true }],
    [
      'a confidence that is a text',
      { ocrConfidence: 'hoch' },
      { ocrConfidence: null, extra: { ocrConfidence: 'hoch' } },
    ],
    ['data that is a list', { data: [1] }, { data: null, extra: { data: [1] } }],
    ['a time that is none', { completedAt: 'gestern' }, { completedAt: null, extra: { completedAt: 'gestern' } }],
    [
      'a time that was never set',
      { deliveredAt: '0001-01-01T00:00:00Z' },
      { deliveredAt: null, extra: { deliveredAt: '0001-01-01T00:00:00Z' } },
    ],
  ])('is accepted with %s, as by the daemon', (_, over, expected) => {
    const given = entryFields(over);
    expect(checkEntry(given).usable).toBe(true);
    expect(readEntry(given)).toMatchObject(expected);
  });

  it('keeps a replaced value once, and no copy of a time in another notation', () => {
    expect(readEntry(entryFields({ deliveredAt: '2026-01-02T09:00:31+01' }))).toMatchObject({ extra: {} });
  });

  it('is unusable without a required field, with the reason', () => {
    const read = readEntry(entryFields({ revision: 'canary-value' }));
    expect(read).toMatchObject({ reason: 'revision', detail: expect.stringMatching(/integer/) });
    expect(isUnusable(read) && read.detail).not.toContain('canary');
  });
});

describe('a single run', () => {
  it('may be processing, and keeps the raw OCR result', () => {
    const { data: _, ...processing } = entryFields({ status: 'processing', rawOcrResult: [{ page: 1 }], stage: 2 });
    const run = readSingleRun(processing);
    expect(run).toMatchObject({ status: 'processing', rawOcrResult: [{ page: 1 }], extra: { stage: 2 } });
    expect(run).not.toHaveProperty('data');
    expect(readSingleRun({ ...processing, data: { old: 1 } })).toMatchObject({ extra: { data: { old: 1 }, stage: 2 } });
    expect(readSingleRun(entryFields())).not.toHaveProperty('rawOcrResult');
  });

  it('is unusable in an unknown state', () => {
    expect(readSingleRun(entryFields({ status: 'uploaded' }))).toMatchObject({ usable: false, reason: 'status' });
  });
});
