import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { runRow, tables, useStore } from '../../support/store.js';

const bench = useStore();
let scans = 0;
/** A scan id of its own for each test. */
const newScan = () => `scan-${++scans}`;

describe('values', () => {
  it('keep every digit and are found where the interface says', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, data: { lang: raw('12345678901234567890'), preis: raw('1.10'), fein: raw('0.1000e2') } }),
    ]);
    const [row] = await bench.rows(runRow(scanId));
    expect(row?.data).toBe('{"fein": 10.00, "lang": 12345678901234567890, "preis": 1.10}');
    expect(row).toMatchObject({
      revision: 1,
      status: 'completed',
      environment: 'prod',
      document_type_slug: 'rechnung',
      document_type_name: 'Rechnung',
      file_name: 'rechnung-1.pdf',
      partner_name: 'Muster GmbH',
      partner_test_mode: false,
      ocr_confidence: 0.97,
      submitted_at: new Date('2026-01-02T08:00:00.000Z'),
      completed_at: new Date('2026-01-02T08:00:30.000Z'),
      delivered_at: new Date('2026-01-02T08:00:31.000Z'),
      result_state: 'complete',
      extra: null,
      repaired: false,
      feed: 'default',
    });
  });

  it('that the interface does not know are kept in extra, digit by digit', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, neu: raw('1.10'), tief: { a: [raw('12345678901234567890')] } })]);
    expect((await bench.rows(runRow(scanId)))[0]?.extra).toBe('{"neu": 1.10, "tief": {"a": [12345678901234567890]}}');
  });

  it('of the document type that the interface does not know are kept in extra too', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, documentType: { slug: 'rechnung', name: null, version: raw('1.10') }, neu: 1 }),
    ]);
    const alone = newScan();
    await feed.commit([entryJson({ scanId: alone, documentType: { slug: null, name: null, version: 2 } })]);
    expect((await bench.rows(runRow(scanId)))[0]?.extra).toBe('{"neu": 1, "documentType": {"version": 1.10}}');
    expect((await bench.rows(runRow(alone)))[0]?.extra).toBe('{"documentType": {"version": 2}}');
  });

  it('that are no good for their column become null, and the original goes to extra', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, ocrConfidence: 'hoch', completedAt: 'gestern', partnerTestMode: 'ja', error: 7 }),
    ]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      ocr_confidence: null,
      completed_at: null,
      partner_test_mode: true,
      repaired: true,
      extra: '{"error": 7, "completedAt": "gestern", "ocrConfidence": "hoch", "partnerTestMode": "ja"}',
    });
  });

  it('a time without a zone is UTC, whatever the zone of the session', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, completedAt: '2026-06-01T12:00:00' })]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      completed_at: new Date('2026-06-01T12:00:00Z'),
      repaired: false,
      extra: null,
    });
  });

  it('missing and null optional fields become null', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const absent = {
      partnerName: null,
      partnerTestMode: undefined,
      ocrConfidence: null,
      data: null,
      deliveredAt: null,
    };
    await feed.commit([
      entryJson({ scanId, ...absent, documentType: { slug: null, name: null }, status: 'failed', error: 'Unlesbar' }),
    ]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      document_type_slug: null,
      partner_name: null,
      partner_test_mode: false,
      ocr_confidence: null,
      data: null,
      delivered_at: null,
      error: 'Unlesbar',
    });
  });

  it('text that PostgreSQL cannot hold is repaired, and the original is kept byte for byte', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const entry = entryJson({ scanId, partnerName: raw('"a\\u0000b\\ud800"') });
    await feed.commit([entryJson({ scanId: newScan() }), entry]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({ partner_name: 'a\ufffdb\ufffd', repaired: true });
    const [kept] = await bench.rows(
      sql<{
        state: string;
        payload: Buffer;
      }>`SELECT state, payload FROM ${tables.quarantine} WHERE scan_id = ${scanId}`,
    );
    expect(kept?.state).toBe('repaired');
    expect(kept?.payload.toString()).toBe(entry);
  });
});
