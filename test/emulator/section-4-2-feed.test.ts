import { describe, expect, it } from 'vitest';
import { ids, noon, setUp } from './client.js';

const hour = 3_600_000;

describe('delivery feed (interface 4.2)', () => {
  it('starts at the beginning of the history when neither cursor nor since is given (rule 1)', async () => {
    const { page, emulator } = await setUp({ history: 1000 });
    const [first] = emulator.entries();
    expect(ids((await page('limit=1')).items)).toEqual([first && 'version' in first ? first.version.scanId : '']);
  });

  it.each([1, 7, 50, 200])('delivers every run exactly once when pages have %i entries', async (limit) => {
    const { drain } = await setUp({ history: 210 });
    const seen = ids((await drain(`limit=${limit}`)).items);
    expect(seen).toHaveLength(210);
    expect(new Set(seen).size).toBe(210);
  });

  it('sorts entries by delivery time, in whatever order they were appended (rule 2)', async () => {
    const { emulator, page } = await setUp();
    const delivered = [2, 3, 1].map((hours) => noon - hours * hour);
    const [second, first, third] = emulator.appendRuns(delivered.map((deliveredAt) => ({ deliveredAt })));
    expect(ids((await page()).items)).toEqual([first?.scanId, second?.scanId, third?.scanId]);
  });

  it('returns 50 entries when no limit is given', async () => {
    const { page } = await setUp({ history: 300 });
    expect((await page()).items).toHaveLength(50);
    expect((await page('limit=200')).items).toHaveLength(200);
    expect((await page('limit=1')).items).toHaveLength(1);
  });

  it('returns the same page again when the cursor is the same', async () => {
    const { page } = await setUp({ history: 30 });
    const { nextCursor } = await page('limit=10');
    expect(await page(`cursor=${nextCursor}&limit=10`)).toEqual(await page(`cursor=${nextCursor}&limit=10`));
  });

  it.each([
    ['status=failed', { status: ['failed'], environment: ['prod'] }],
    ['status=completed,failed', { status: ['completed', 'failed'], environment: ['prod'] }],
    ['status=failed,completed', { status: ['completed', 'failed'], environment: ['prod'] }],
    ['environment=test', { status: ['completed'], environment: ['test'] }],
    ['environment=all', { status: ['completed'], environment: ['prod', 'test'] }],
    ['environment=all&status=completed,failed', { status: ['completed', 'failed'], environment: ['prod', 'test'] }],
  ])('filters entries when the query is %s', async (query, expected) => {
    const { drain } = await setUp({ history: 400, switches: { failureShare: 0.4, testEnvironmentShare: 0.4 } });
    const all = (await drain('status=completed,failed&environment=all')).items;
    const { items } = await drain(query);
    const wanted = all.filter(
      (item) =>
        expected.status.includes(String(item.status)) && expected.environment.includes(String(item.environment)),
    );
    expect(ids(items)).toEqual(ids(wanted));
    expect(wanted.length).toBeGreaterThan(20);
  });

  it('filters entries when a documentType is given', async () => {
    const { drain } = await setUp({ history: 300 });
    const all = (await drain()).items;
    const wanted = all.filter((item) => (item.documentType as { slug: string }).slug === 'gutschrift');
    expect(ids((await drain('documentType=gutschrift')).items)).toEqual(ids(wanted));
    expect(wanted.length).toBeGreaterThan(5);
  });

  it('advances the cursor when the filters skip runs (rule 2)', async () => {
    const { page, emulator } = await setUp({ history: 20 });
    const skipped = await page('environment=test');
    expect(skipped.items).toEqual([]);
    // Entries already passed do not become visible by changing filters.
    expect((await page(`cursor=${skipped.nextCursor}&environment=all`)).items).toEqual([]);
    emulator.appendCount(1);
    expect((await page(`cursor=${skipped.nextCursor}&environment=all`)).items).toHaveLength(1);
  });

  it('continues at the same position when the filters change between polls (rule 2)', async () => {
    const { page, drain } = await setUp({ history: 100, switches: { testEnvironmentShare: 0.5 } });
    const all = (await drain('environment=all')).items;
    const first = await page('environment=test&limit=10');
    const last = ids(first.items).at(-1);
    const rest = await page(`environment=all&limit=200&cursor=${first.nextCursor}`);
    expect(ids(rest.items)).toEqual(ids(all.slice(ids(all).indexOf(last ?? '') + 1)));
  });

  it('accepts since as ISO 8601 or milliseconds since 1970, exclusive only when the switch is set', async () => {
    const { page, drain, emulator } = await setUp({ history: 100 });
    const all = (await drain()).items;
    const time = String(all[40]?.deliveredAt);
    const ms = new Date(time).getTime();
    const cet = `${new Date(ms + hour).toISOString().replace('Z', '+01:00')}`;
    for (const since of [time, String(ms), cet, time.replace('Z', '')]) {
      expect(ids((await page(`since=${encodeURIComponent(since)}&limit=200`)).items)).toEqual(ids(all.slice(40)));
    }
    emulator.set({ sinceBoundary: 'exclusive' });
    expect(ids((await page(`since=${ms}&limit=200`)).items)).toEqual(ids(all.slice(41)));
  });

  it('accepts a date, a time in the future and 0 as since', async () => {
    const { page, emulator, advance } = await setUp({ history: 100 });
    expect((await page('since=0&limit=200')).items).toHaveLength(100);
    expect((await page('since=2026-09-01&limit=200')).items).toHaveLength(100);
    const { items, nextCursor } = await page(`since=${noon + hour}`);
    expect(items).toEqual([]);
    emulator.appendCount(1);
    advance(2 * hour);
    const [late] = emulator.appendCount(1);
    expect(ids((await page(`cursor=${nextCursor}`)).items)).toEqual([late?.scanId]);
  });

  it.each(['true', '1', 'yes'])('includes markdown in every entry when markdown=%s', async (value) => {
    const { page } = await setUp({ history: 20 });
    for (const item of (await page(`markdown=${value}`)).items) expect(item.markdown).toMatch(/^# /);
  });

  it.each(['', '&markdown=', '&markdown=false', '&markdown=0', '&markdown=no'])(
    'includes no markdown when the query has "%s"',
    async (query) => {
      const { page } = await setUp({ history: 20 });
      for (const item of (await page(`limit=10${query}`)).items) expect(item).not.toHaveProperty('markdown');
    },
  );

  describe('inline copies (rule 6)', () => {
    const big = { data: { text: 'x'.repeat(2000) }, markdown: 'kurz' };

    it.each([
      ['data', { ...big, markdown: 'kurz' }, false, true],
      ['markdown', { data: { a: 1 }, markdown: 'ü'.repeat(600) }, true, false],
      ['both', { ...big, markdown: 'x'.repeat(1001) }, false, false],
    ])('omit %s and set resultTruncated when the limit is exceeded', async (_, spec, hasData, hasMarkdown) => {
      const { emulator, page, get } = await setUp({ switches: { inlineLimitBytes: 1000 } });
      const [run] = emulator.appendRuns([spec]);
      const [entry] = (await page('markdown=true')).items;
      expect(entry?.resultTruncated).toBe(true);
      expect([entry !== undefined && 'data' in entry, entry !== undefined && 'markdown' in entry]).toEqual([
        hasData,
        hasMarkdown,
      ]);
      const full = (await get(`/scans/${run?.scanId}?markdown=true`)).json;
      expect(full).toMatchObject({ ...spec, resultTruncated: false });
    });

    it('include values when they have exactly the limit', async () => {
      const { emulator, page } = await setUp({ switches: { inlineLimitBytes: 1000 } });
      const dataJson = `{"x":"${'x'.repeat(1000 - '{"x":""}'.length)}"}`;
      emulator.appendRuns([
        { dataJson, markdown: 'x'.repeat(1000) },
        { dataJson: `${dataJson} `, markdown: '' },
      ]);
      const { items } = await page('markdown=true');
      expect(items.map((item) => item.resultTruncated)).toEqual([false, true]);
    });

    it('set resultTruncated when markdown is too large, even if it was not requested', async () => {
      const { emulator, page } = await setUp();
      emulator.appendRuns([{ truncated: 'markdown' }]);
      const [entry] = (await page()).items;
      expect(entry).toMatchObject({ resultTruncated: true, data: expect.any(Object) });
    });

    it('omit values for a share of completed runs when one is set', async () => {
      const { drain, emulator } = await setUp({ history: 1000, switches: { truncatedShare: 0.2, failureShare: 0.1 } });
      const { items } = await drain('markdown=1&status=completed,failed&limit=200');
      const truncated = items.filter((item) => item.resultTruncated === true);
      expect(truncated.length).toBeGreaterThan(130);
      expect(truncated.length).toBeLessThan(250);
      for (const item of truncated) expect('data' in item && 'markdown' in item).toBe(false);
      expect(truncated.every((item) => item.status === 'completed')).toBe(true);
      emulator.set({ truncatedShare: 0 });
      expect((await drain('limit=200')).items.some((item) => item.resultTruncated)).toBe(false);
    });
  });

  it('delivers runs like any other when their partner is in test mode (rule 7)', async () => {
    const { page, drain, emulator } = await setUp({ history: 1000 });
    const modes = new Map<string, boolean>();
    for (const item of (await drain('limit=200')).items) {
      const { slug } = item.documentType as { slug: string };
      const place = `${item.partnerName}/${slug}`;
      expect(modes.get(place) ?? item.partnerTestMode).toBe(item.partnerTestMode);
      modes.set(place, item.partnerTestMode as boolean);
      if (item.partnerName === null) expect(item.partnerTestMode).toBe(false);
    }
    expect(new Set(modes.values())).toEqual(new Set([true, false]));
    const { nextCursor } = await page('since=9999999999999');
    expect(nextCursor).toMatch(/./);
    emulator.appendRuns([{ partnerTestMode: true, partnerName: 'Probe GmbH' }]);
    const last = (await drain('limit=200')).items.at(-1);
    expect(last).toMatchObject({ partnerTestMode: true, partnerName: 'Probe GmbH', data: expect.any(Object) });
  });

  describe('cursors', () => {
    it('stay the same at the end of the feed when they are stable', async () => {
      const { page, drain, advance } = await setUp({ history: 5 });
      const { cursor } = await drain();
      advance(hour);
      expect((await page(`cursor=${cursor}`)).nextCursor).toBe(cursor);
    });

    it('change with every poll, and continue at the same position, when they are moving', async () => {
      const { page, emulator } = await setUp({ history: 5, switches: { cursors: 'moving' } });
      const seen = new Set<string>();
      let { nextCursor: cursor } = await page();
      for (let i = 0; i < 3; i++) {
        seen.add(cursor);
        ({ nextCursor: cursor } = await page(`cursor=${cursor}`));
      }
      expect(seen.size).toBe(3);
      const [added] = emulator.appendCount(1);
      for (const old of seen) expect(ids((await page(`cursor=${old}`)).items)).toEqual([added?.scanId]);
    });

    it('are rejected when they were altered', async () => {
      const { page, get } = await setUp({ history: 5 });
      const { nextCursor } = await page();
      for (let i = 0; i < nextCursor.length; i++) {
        const other = nextCursor[i] === 'A' ? 'B' : 'A';
        const altered = nextCursor.slice(0, i) + other + nextCursor.slice(i + 1);
        expect((await get(`/scans?cursor=${altered}`)).status).toBe(400);
      }
    });

    it('stay valid after a restart when the seed is the same', async () => {
      const first = await setUp({ history: 20, seed: 7 });
      const { items, nextCursor } = await first.page('limit=5');
      const second = await setUp({ history: 20, seed: 7 });
      const rest = await second.page(`cursor=${nextCursor}`);
      expect(rest.items).toHaveLength(15);
      expect(ids(rest.items)).not.toContain(ids(items)[4]);
    });

    it('stay valid after a restart when they were issued after an invalidation', async () => {
      const first = await setUp({ history: 20, seed: 7 });
      const { nextCursor: rejected } = await first.page('limit=5');
      first.emulator.invalidateCursors();
      expect((await first.get(`/scans?cursor=${rejected}`)).status).toBe(400);
      const { nextCursor } = await first.page('limit=5');
      const second = await setUp({ history: 20, seed: 7 });
      expect((await second.page(`cursor=${nextCursor}`)).items).toHaveLength(15);
      second.advance(1);
      second.emulator.invalidateCursors();
      expect((await second.get(`/scans?cursor=${nextCursor}`)).status).toBe(400);
    });

    it('do not skip an entry when it appears later in the same millisecond', async () => {
      const { page, emulator } = await setUp();
      let cursor = (await page()).nextCursor;
      for (let i = 0; i < 5; i++) {
        const [run] = emulator.appendCount(1);
        const next = await page(`cursor=${cursor}`);
        expect(ids(next.items)).toEqual([run?.scanId]);
        cursor = next.nextCursor;
      }
    });
  });

  it('returns short pages before the end when the scan limit is reached', async () => {
    const { page } = await setUp({ history: 100, switches: { scanLimit: 10 } });
    const first = await page('environment=test');
    const second = await page(`environment=test&cursor=${first.nextCursor}`);
    expect([first.items, second.items]).toEqual([[], []]);
    expect(second.nextCursor).not.toBe(first.nextCursor);
    expect((await page(`cursor=${second.nextCursor}&limit=200`)).items).toHaveLength(10);
  });

  it('sends the time of the service clock as Date, or no Date when it is disabled', async () => {
    const { get, emulator, advance } = await setUp({ switches: { clockOffsetMs: 90_000 } });
    expect((await get('/scans')).headers.get('date')).toBe('Thu, 01 Oct 2026 12:01:30 GMT');
    advance(1000);
    expect((await get('/scans/unbekannt')).headers.get('date')).toBe('Thu, 01 Oct 2026 12:01:31 GMT');
    const [run] = emulator.appendCount(1);
    expect(new Date(run?.deliveredAt ?? 0).toISOString()).toBe('2026-10-01T12:01:31.000Z');
    emulator.set({ dateHeader: false });
    expect((await get('/scans')).headers.get('date')).toBeNull();
  });
});
