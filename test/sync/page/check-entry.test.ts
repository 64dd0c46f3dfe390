import { describe, expect, it } from 'vitest';
import { checkEntry } from '../../../src/sync/page/check-entry.js';
import { readTimestamp } from '../../../src/sync/page/timestamps.js';
import { entryJson, type Fields, raw } from '../../support/entries.js';

const check = (over: Fields) => checkEntry(JSON.parse(entryJson(over)));

describe('an entry with an unusable required field is rejected with the field', () => {
  it.each([
    ['scan_id', { scanId: undefined }],
    ['scan_id', { scanId: '' }],
    ['scan_id', { scanId: 7 }],
    ['scan_id', { scanId: raw('"a\\u0000b"') }],
    ['scan_id', { scanId: raw('"\\ud800"') }],
    ['scan_id', { scanId: 'x'.repeat(1025) }],
    ['revision', { revision: undefined }],
    ['revision', { revision: 0 }],
    ['revision', { revision: -1 }],
    ['revision', { revision: 1.5 }],
    ['revision', { revision: '1' }],
    ['revision', { revision: 2 ** 31 }],
    ['status', { status: 'processing' }],
    ['status', { status: undefined }],
    ['environment', { environment: 'staging' }],
    ['document_type', { documentType: null }],
    ['document_type', { documentType: 'rechnung' }],
    ['document_type', { documentType: { slug: 7, name: null } }],
    ['file_name', { fileName: undefined }],
    ['file_name', { fileName: null }],
  ])('%s: %j', (reason, over) => {
    expect(check(over)).toMatchObject({ usable: false, reason });
  });

  it.each([null, 7, 'text', [], true])('not_an_object: %j', (entry) => {
    expect(checkEntry(entry)).toMatchObject({ usable: false, reason: 'not_an_object', scanId: null, revision: null });
  });

  it('keeps scan id and revision of a rejected entry when they are usable', () => {
    expect(check({ status: 'unknown', revision: 3 })).toMatchObject({ scanId: 'scan-1', revision: 3 });
  });

  it('never quotes a value', () => {
    const checked = check({ status: 'GEHEIM' });
    expect(JSON.stringify(checked)).not.toContain('GEHEIM');
  });
});

describe('a bad optional value is replaced, the entry stays', () => {
  it.each([
    ['ocrConfidence', 'hoch', null],
    ['ocrConfidence', raw('1e400'), null],
    ['partnerName', 7, null],
    ['data', [1], null],
    ['data', 'text', null],
    ['failureReason', {}, null],
    ['error', 1, null],
    ['markdown', 1, null],
    ['completedAt', 'yesterday', null],
    ['completedAt', '2026-02-30T00:00:00Z', null],
    ['completedAt', 1767340800000, null],
    ['partnerTestMode', 'ja', true],
    ['failureReason', 'unreadable', null],
    ['error', 'Nicht lesbar.', null],
  ])('%s: %j becomes %j', (field, value, expected) => {
    const checked = check({ [field]: value });
    expect(checked).toMatchObject({ usable: true, replaced: { [field]: expected }, normalized: [] });
  });

  it.each([
    '0001-01-01T00:00:00Z',
    '0001-01-01T00:00:00+02:00',
    '1601-01-01T00:00:00Z',
    '1753-01-01T00:00:00Z',
    '1899-12-30T00:00:00',
    '1970-01-01T00:00:00Z',
    '1970-01-01T01:00:00+01:00',
    '1980-01-01T00:00:00Z',
    '2000-01-01T00:00:00.000Z',
    '2001-01-01T14:00:00Z',
    '2079-06-06T23:59:00Z',
    '2099-12-31T23:59:59Z',
    '9999-12-31T23:59:59.9999999Z',
    '9999-12-31T00:00:00+01:00',
  ])('a time that means none is treated as missing: %s', (time) => {
    const checked = check({ submittedAt: time, completedAt: time, deliveredAt: time });
    expect(checked).toMatchObject({
      run: { deliveredAt: null },
      replaced: { submittedAt: null, completedAt: null, deliveredAt: null },
      normalized: [],
    });
  });

  it.each(['2002-01-01T00:00:00Z', '2078-12-31T23:59:59.999Z'])('a time in the range is kept: %s', (time) => {
    expect(check({ deliveredAt: time })).toMatchObject({ run: { deliveredAt: new Date(time) }, replaced: {} });
  });

  it('has no data when it failed', () => {
    const checked = check({ status: 'failed', data: { a: 1 }, failureReason: 'unreadable', error: 'Nicht lesbar.' });
    expect(checked).toMatchObject({ usable: true, replaced: { data: null }, normalized: [] });
  });

  it('accepts missing and null optional fields', () => {
    const over = Object.fromEntries(
      ['partnerName', 'ocrConfidence', 'data', 'submittedAt', 'resultTruncated'].map((name) => [name, null]),
    );
    expect(check({ ...over, completedAt: undefined, partnerTestMode: undefined })).toMatchObject({ replaced: {} });
  });

  it('reads a timestamp without a zone as UTC, which is not a repair', () => {
    expect(check({ completedAt: '2026-01-02T08:00:30' })).toMatchObject({
      replaced: { completedAt: '2026-01-02T08:00:30Z' },
      normalized: ['completedAt'],
    });
  });
});

describe('timestamps are strict ISO 8601', () => {
  it.each([
    'now',
    'infinity',
    '2026-01-02',
    '2026-01-02T24:00:00Z',
    '2026-13-01T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-01-02T08:61:00Z',
    '2026-01-02T08:00:61Z',
    '12026-01-02T08:00:00Z',
    '2026-01-02T08:00:00+15:00',
    '2026-01-02T08:00:60.5Z',
    '9999-12-31T23:59:59.9999999Z',
    '9999-12-31T23:59:59-00:01',
    '0001-01-01T00:00:00+00:01',
    '2026-01-02T08Z',
    '2026-01-02 08:00:00Z',
    '',
  ])('rejects %j', (text) => {
    expect(readTimestamp(text)).toBeNull();
  });

  it.each([
    ['2026-01-02T08:00:00Z', '2026-01-02T08:00:00.000Z'],
    ['2024-02-29T23:59:59.123456789+14:00', '2024-02-29T09:59:59.123Z'],
    ['2026-01-02T08:00Z', '2026-01-02T08:00:00.000Z'],
    ['2026-01-02T08:00:00-0330', '2026-01-02T11:30:00.000Z'],
    ['2026-01-02T23:59:59.99999951Z', '2026-01-03T00:00:00.000Z'],
    ['0099-01-01T00:00:00Z', '0099-01-01T00:00:00.000Z'],
  ])('keeps %j unchanged', (text, at) => {
    expect(readTimestamp(text)).toEqual({ text, at: new Date(at), zoneAdded: false });
  });

  it.each([
    ['2026-01-02T08:00', '2026-01-02T08:00Z', true],
    ['2026-01-02T08:00:30,25', '2026-01-02T08:00:30.25Z', true],
    ['2026-01-02T08:00:30,25Z', '2026-01-02T08:00:30.25Z', false],
    ['2026-01-02t08:00:30z', '2026-01-02T08:00:30Z', false],
    ['2026-01-02T08:00:30+02', '2026-01-02T08:00:30+02:00', false],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z', false],
  ])('stores %j as %j', (given, text, zoneAdded) => {
    expect(readTimestamp(given)).toEqual({ text, at: new Date(text), zoneAdded });
  });
});
