import { describe, expect, it } from 'vitest';
import { scramble, unscramble } from '../../src/emulator/model/random.js';
import { runNumberOf, scanIdOf } from '../../src/emulator/model/scan-ids.js';
import { ids, noon, setUp } from './client.js';

interface Line {
  menge: number;
  einzelpreis: number;
  gesamtpreis: number;
  steuersatz: number;
}

describe('generated documents', () => {
  it('are equal when their seeds are equal, and differ when they differ', async () => {
    const texts = async (seed: number) =>
      (await (await setUp({ history: 300, seed })).get('/scans?limit=200&markdown=1')).text;
    expect(await texts(5)).toBe(await texts(5));
    expect(await texts(5)).not.toBe(await texts(6));
  });

  it('are equal when they are read with other page sizes', async () => {
    const { drain, page } = await setUp({ history: 200 });
    const byOne = (await drain('limit=1')).items;
    expect((await page('limit=200')).items).toEqual(byOne);
  });

  it('have amounts with two decimals and archive numbers with twenty digits', async () => {
    const { get } = await setUp({ history: 200 });
    const { text } = await get('/scans?limit=200');
    const amounts = [
      ...text.matchAll(/"(?:nettobetrag|bruttobetrag|einzelpreis|gesamtpreis|netto|steuer)":([^,}\]]+)/g),
    ];
    expect(amounts.length).toBeGreaterThan(500);
    for (const [, amount] of amounts) expect(amount).toMatch(/^\d+\.\d\d$/);
    expect(amounts.some(([, amount]) => amount?.endsWith('0'))).toBe(true);
    const numbers = [...text.matchAll(/"archivnummer":([^,]+)/g)];
    expect(numbers).toHaveLength(200);
    for (const [, number] of numbers) expect(number).toMatch(/^1\d{19}$/);
  });

  it('have consistent sums', async () => {
    const { page } = await setUp({ history: 200 });
    const invoices = (await page('limit=200')).items
      .map((item) => item.data as Record<string, unknown>)
      .filter((data) => 'nettobetrag' in data);
    expect(invoices.length).toBeGreaterThan(80);
    for (const data of invoices) {
      const lines = data.positionen as Line[];
      for (const line of lines) expect(line.gesamtpreis).toBeCloseTo(line.menge * line.einzelpreis, 1);
      const net = lines.reduce((sum, line) => sum + line.gesamtpreis, 0);
      expect(data.nettobetrag).toBeCloseTo(net, 2);
      const taxes = (data.steuern as { steuer: number }[]).reduce((sum, tax) => sum + tax.steuer, 0);
      expect(data.bruttobetrag).toBeCloseTo(net + taxes, 2);
    }
  });

  it.each([1700, 6000])('have about %i bytes on average when that size is set', async (runBytes) => {
    const { get } = await setUp({ history: 600, runBytes, switches: { failureShare: 0.03 } });
    const { text, json } = await get('/scans?limit=200&status=completed,failed');
    const mean = Buffer.byteLength(text) / (json.items as unknown[]).length;
    expect(mean).toBeGreaterThan(runBytes * 0.9);
    expect(mean).toBeLessThan(runBytes * 1.1);
  });

  it('are spread over the period before the start, with none in the future', async () => {
    const { drain } = await setUp({ history: 100, historyPeriodMs: 100_000 });
    const times = (await drain()).items.map((item) => new Date(String(item.deliveredAt)).getTime());
    expect(times[0]).toBeGreaterThan(noon - 100_000);
    expect(times[0]).toBeLessThan(noon - 98_000);
    expect(times.at(-1)).toBeLessThanOrEqual(noon);
    expect(times.at(-1)).toBeGreaterThan(noon - 2000);
  });

  it('are readable immediately anywhere when the history has ten million runs', async () => {
    const { page, get } = await setUp({ history: 10_000_000 });
    const { items } = await page(`since=${noon - 86_400_000}&limit=200`);
    expect(items).toHaveLength(200);
    expect(items[0]?.fileName).toMatch(/_9666\d{3}\.pdf$/);
    expect((await get(`/scans/${ids(items)[7]}`)).json.data).toEqual(items[7]?.data);
  });

  it('have scan ids that can be converted to their number, with their seed only', () => {
    const seen = new Set<string>();
    for (const number of [0, 1, 2, 77, 999_999, 2 ** 31, 2 ** 32 - 1]) {
      const id = scanIdOf(12345, number);
      seen.add(id);
      expect(unscramble(scramble(number))).toBe(number);
      expect(runNumberOf(12345, id)).toBe(number);
      expect(runNumberOf(54321, id)).toBeNull();
    }
    expect(seen.size).toBe(7);
  });
});
