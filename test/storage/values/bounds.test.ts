import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { JSON_LIMITS } from '../../../src/sync/page/json-limits.js';
import { entryJson, type Fields, pageJson, raw } from '../../support/entries.js';
import { runRow, tables, useStore } from '../../support/store.js';
import { IS_THOROUGH } from '../../support/thorough.js';
import { deliver } from './deliver.js';

const setup = useStore();
let scans = 0;
const newScan = () => {
  scans += 1;
  return `scan-${scans}`;
};
/** Text that does not compress. */
const text = (bytes: number) =>
  Array.from({ length: Math.ceil(bytes / 43) }, (_, n) =>
    createHash('sha256').update(`${bytes} ${n}`).digest('base64url'),
  )
    .join('')
    .slice(0, bytes);
const nested = (depth: number) => raw(`${'{"a":'.repeat(depth)}1.10${'}'.repeat(depth)}`);

/** Delivers the entry between two others, which must be stored in any case. */
async function deliverBetween(entry: string) {
  const neighbours = [newScan(), newScan()];
  const [before, after] = neighbours.map((scanId) => entryJson({ scanId })) as [string, string];
  await deliver(setup, pageJson([before, entry, after]));
  const stored = await setup.rows(sql`SELECT FROM ${tables.runs} WHERE scan_id = ANY (${neighbours}::text[])`);
  expect(stored).toHaveLength(2);
}

const reasonOf = async (entry: string) => {
  const payload = Buffer.from(entry);
  const [kept] = await setup.rows(
    sql<{ reason: string; state: string }>`SELECT reason, state FROM ${tables.quarantine} WHERE payload = ${payload}`,
  );
  return kept;
};

describe('an entry beyond a limit', () => {
  it.each<[string, string, (scanId: string) => Fields]>([
    ['nesting', 'data nested deeper than the limit', () => ({ data: nested(JSON_LIMITS.depth) })],
    ['nesting', "data nested deeper than PostgreSQL's stack", () => ({ data: nested(40_000) })],
    ['nesting', 'an unknown field nested deeper than the limit', () => ({ neu: nested(JSON_LIMITS.depth) })],
    [
      'expansion',
      'a thousand numbers of 131,072 digits in 9 KB',
      () => ({ data: { n: raw(`[${'1e131071,'.repeat(999)}1e131071]`) } }),
    ],
    [
      'expansion',
      '200 such numbers under separate names',
      () => ({ data: raw(`{${Array.from({ length: 200 }, (_, n) => `"${n}":-1.5E+0131000`).join()}}`) }),
    ],
    ['expansion', 'zeros with very many decimals', () => ({ neu: raw(`[${'0e-16383 ,'.repeat(99)}0e-16383]`) })],
    [
      'expansion',
      'such numbers hidden by a repeated name',
      () => ({ data: raw(`{"a":[${'1e99999,'.repeat(20)}1],"a":2}`) }),
    ],
    ['refused', 'a number too large for PostgreSQL', () => ({ data: { n: raw('1e131072') } })],
    ['refused', 'a number with too many decimals', () => ({ data: { n: raw('1e-16384') } })],
    ['document_type', 'a slug too long to be indexed', () => ({ documentType: { slug: 'ß'.repeat(257), name: null } })],
    ['scan_id', 'a scan id too long to be indexed', (scanId) => ({ scanId: scanId.padEnd(1025, 'x') })],
    ['scan_id', 'a scan id with too many bytes', (scanId) => ({ scanId: scanId.padEnd(600, 'ß') })],
  ])('is quarantined with the reason %s when it has %s', async (reason, _what, over) => {
    const scanId = newScan();
    const entry = entryJson({ scanId, ...over(scanId) });
    await deliverBetween(entry);
    expect(await reasonOf(entry)).toEqual({ reason, state: 'open' });
    expect(await setup.rows(runRow(scanId))).toEqual([]);
  });

  // At these sizes PostgreSQL fails with XX000, an error of the server, which would be retried forever.
  it.runIf(IS_THOROUGH).each([
    ['an array', `[${'1,'.repeat(17_000_000)}1]`],
    ['an object with equal names', `{${'"":1,'.repeat(8_500_000)}"":1}`],
  ])('is quarantined with the reason elements when %s has more than PostgreSQL can hold', async (_what, value) => {
    const scanId = newScan();
    const entry = entryJson({ scanId, data: raw(`{"a":${value},"a":1}`) });
    await deliverBetween(entry);
    const kept = await setup.rows(
      sql`SELECT reason, state, length(payload) AS bytes FROM ${tables.quarantine} WHERE scan_id = ${scanId}`,
    );
    expect(kept).toEqual([{ reason: 'elements', state: 'open', bytes: entry.length }]);
  });
});

describe('an entry within the limits', () => {
  it.each<[string, Fields, string]>([
    [
      'data nested as deep as allowed',
      { data: nested(JSON_LIMITS.depth - 1) },
      `${'{"a": '.repeat(499)}1.10${'}'.repeat(499)}`,
    ],
    ['one very large number', { data: { n: raw('1e131071') } }, `{"n": 1${'0'.repeat(131_071)}}`],
    ['one very small number', { data: { n: raw('1e-16383') } }, `{"n": 0.${'0'.repeat(16_382)}1}`],
    ['a number with 100,000 digits', { data: { n: raw('7'.repeat(100_000)) } }, `{"n": ${'7'.repeat(100_000)}}`],
    [
      'a text that looks like numbers',
      { data: { t: 'e99, [1e131071,1e131071]' } },
      '{"t": "e99, [1e131071,1e131071]"}',
    ],
  ])('is stored when it has %s', async (_what, over, data) => {
    const scanId = newScan();
    await deliverBetween(entryJson({ scanId, ...over }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ data, repaired: false });
  });

  it('is stored when a text looks like a thousand numbers', async () => {
    const scanId = newScan();
    await deliverBetween(entryJson({ scanId, data: { t: '1e131071,'.repeat(1_000), n: raw('1e10') } }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ repaired: false });
  });
});

/** Maximum length of the texts of indexed columns, UTF-8 bytes. */
const LONGEST = { scanId: 1024, slug: 512, partnerName: 1024, failureReason: 512 };

describe('an indexed column', () => {
  const failed = { status: 'failed', data: null };
  const longest = {
    ...failed,
    scanId: 's'.repeat(LONGEST.scanId - 1),
    documentType: { slug: '\u0000'.repeat(Math.floor(LONGEST.slug / 3)), name: 'n'.repeat(300_000) },
    partnerName: 'ß'.repeat(LONGEST.partnerName / 2),
    failureReason: 'f'.repeat(LONGEST.failureReason),
    fileName: 'x'.repeat(300_000),
    error: 'x'.repeat(300_000),
  };
  beforeAll(async () => {
    await setup.rows(sql`CREATE INDEX together ON ${tables.runs} (document_type_slug, partner_name, failure_reason)`);
  });

  it('is stored when all columns of one index have their maximum length', async () => {
    const scanId = text(LONGEST.scanId);
    const over = {
      ...failed,
      documentType: { slug: text(LONGEST.slug), name: null },
      partnerName: text(LONGEST.partnerName),
      failureReason: text(LONGEST.failureReason),
    };
    await deliverBetween(entryJson({ scanId, ...over }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      document_type_slug: over.documentType.slug,
      partner_name: over.partnerName,
      failure_reason: over.failureReason,
      repaired: false,
    });
  });

  it('is stored when it has its maximum length after a repair', async () => {
    const scanId = newScan().padEnd(LONGEST.scanId, 's');
    await deliverBetween(entryJson({ ...longest, scanId }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      document_type_slug: '\ufffd'.repeat(Math.floor(LONGEST.slug / 3)),
      partner_name: longest.partnerName,
      failure_reason: longest.failureReason,
      file_name: longest.fileName,
      error: longest.error,
      repaired: true,
    });
  });

  it.each<[string, string, string]>([
    ['partnerName', 'partner_name', 'p'.repeat(LONGEST.partnerName + 1)],
    ['partnerName', 'partner_name', 'p'.repeat(300_000)],
    ['partnerName', 'partner_name', 'ß'.repeat(513)],
    ['failureReason', 'failure_reason', 'f'.repeat(LONGEST.failureReason + 1)],
  ])('becomes null, with the original in extra, when it is longer: %s', async (field, column, value) => {
    const scanId = newScan();
    await deliverBetween(entryJson({ ...failed, scanId, [field]: value }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      [column]: null,
      repaired: true,
      extra: `{"${field}": "${value}"}`,
    });
  });

  it('is limited by its stored bytes when those differ from the bytes sent', async () => {
    const scanId = newScan();
    await deliverBetween(entryJson({ scanId, partnerName: '\u0000'.repeat(342) }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ partner_name: null, repaired: true });
  });
});

describe('a confidence', () => {
  it.each([
    ['1e-400', `0.${'0'.repeat(399)}1`],
    [`0.${'0'.repeat(330)}1`, `0.${'0'.repeat(330)}1`],
    ['-1e-400', `-0.${'0'.repeat(399)}1`],
    ['1e400', `1${'0'.repeat(400)}`],
  ])('becomes null when a double cannot represent it: %s', async (sent, kept) => {
    const scanId = newScan();
    await deliverBetween(entryJson({ scanId, ocrConfidence: raw(sent) }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      ocr_confidence: null,
      repaired: true,
      extra: `{"ocrConfidence": ${kept}}`,
    });
  });

  it.each([
    ['-0', -0],
    ['0e-400', 0],
    ['0.000', 0],
    ['4.9e-324', 4.9e-324],
    ['1.7976931348623157e308', 1.7976931348623157e308],
  ])('is kept when a double can represent it: %s', async (sent, expected) => {
    const scanId = newScan();
    await deliverBetween(entryJson({ scanId, ocrConfidence: raw(sent) }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      ocr_confidence: expected,
      repaired: false,
      extra: null,
    });
  });
});
