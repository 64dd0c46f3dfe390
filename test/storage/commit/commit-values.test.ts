import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { runRow, tables, useStore } from '../../support/store.js';

const setup = useStore();
let scans = 0;
/** A separate scan id for each test. */
const newScan = () => `scan-${++scans}`;

describe('values', () => {
  it('keep every digit when they have columns', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, data: { lang: raw('12345678901234567890'), preis: raw('1.10'), fein: raw('0.1000e2') } }),
    ]);
    const [row] = await setup.rows(runRow(scanId));
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

  it('go to extra with every digit when the interface does not know them', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, neu: raw('1.10'), tief: { a: [raw('12345678901234567890')] } })]);
    expect((await setup.rows(runRow(scanId)))[0]?.extra).toBe('{"neu": 1.10, "tief": {"a": [12345678901234567890]}}');
  });

  it('go to extra when the document type has unknown fields', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, documentType: { slug: 'rechnung', name: null, version: raw('1.10') }, neu: 1 }),
    ]);
    const alone = newScan();
    await feed.commit([entryJson({ scanId: alone, documentType: { slug: null, name: null, version: 2 } })]);
    expect((await setup.rows(runRow(scanId)))[0]?.extra).toBe('{"neu": 1, "documentType": {"version": 1.10}}');
    expect((await setup.rows(runRow(alone)))[0]?.extra).toBe('{"documentType": {"version": 2}}');
  });

  it('become null, with the original in extra, when they do not fit their column', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, ocrConfidence: 'hoch', completedAt: 'gestern', partnerTestMode: 'ja', error: 7 }),
    ]);
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      ocr_confidence: null,
      completed_at: null,
      partner_test_mode: true,
      repaired: true,
      extra: '{"error": 7, "completedAt": "gestern", "ocrConfidence": "hoch", "partnerTestMode": "ja"}',
    });
  });

  it('are only in extra when a run in that state does not have them', async () => {
    const feed = await setup.takeFeed();
    const [failed, completed] = [newScan(), newScan()];
    const failure = { failureReason: 'unreadable', error: 'Unlesbar' };
    await feed.commit([
      entryJson({ scanId: failed, status: 'failed', ...failure, data: { betrag: raw('1.10') } }),
      entryJson({ scanId: completed, ...failure }),
    ]);
    expect((await setup.rows(runRow(failed)))[0]).toMatchObject({
      ...{ data: null, failure_reason: 'unreadable', error: 'Unlesbar' },
      extra: '{"data": {"betrag": 1.10}}',
    });
    expect((await setup.rows(runRow(completed)))[0]).toMatchObject({
      ...{ failure_reason: null, error: null, repaired: true },
      extra: '{"error": "Unlesbar", "failureReason": "unreadable"}',
    });
  });

  it('times are UTC when they have no time zone, in any session', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, completedAt: '2026-06-01T12:00:00' })]);
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      completed_at: new Date('2026-06-01T12:00:00Z'),
      repaired: false,
      extra: null,
    });
  });

  it('become null when optional fields are missing or null', async () => {
    const feed = await setup.takeFeed();
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
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      document_type_slug: null,
      partner_name: null,
      partner_test_mode: false,
      ocr_confidence: null,
      data: null,
      delivered_at: null,
      error: 'Unlesbar',
    });
  });

  it('are repaired, with the original in quarantine, when PostgreSQL cannot store the text', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const entry = entryJson({ scanId, partnerName: raw('"a\\u0000b\\ud800"') });
    await feed.commit([entryJson({ scanId: newScan() }), entry]);
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ partner_name: 'a\ufffdb\ufffd', repaired: true });
    const [kept] = await setup.rows(
      sql<{
        state: string;
        payload: Buffer;
      }>`SELECT state, payload FROM ${tables.quarantine} WHERE scan_id = ${scanId}`,
    );
    expect(kept?.state).toBe('repaired');
    expect(kept?.payload.toString()).toBe(entry);
  });
});
