import { describe, expect, it } from 'vitest';
import { ids, noon, revisions, setUp } from './client.js';

/** Cases that the interface leaves open; the other ones are tested with their sections. */
describe('a correction delivered in place', () => {
  it('is listed at the position of its run, with a new delivery time', async () => {
    const { emulator, drain, page, advance } = await setUp({ history: 10, switches: { redelivery: 'in-place' } });
    const { items, cursor } = await drain();
    advance(1_000);
    const { deliveredAt } = emulator.correct(String(items[3]?.scanId));
    const after = (await drain()).items;
    expect(ids(after)).toEqual(ids(items));
    expect(after[3]).toMatchObject({ revision: 2, deliveredAt: new Date(deliveredAt).toISOString() });
    expect(String(after[3]?.deliveredAt) > String(after[9]?.deliveredAt)).toBe(true);
    expect((await page(`cursor=${cursor}`)).items).toEqual([]);
  });
});

describe('a scripted run', () => {
  it('is not in test mode when it has no partner (interface 2.1)', async () => {
    const { emulator, drain } = await setUp();
    emulator.appendRuns(Array.from({ length: 500 }, () => ({ partnerName: null })));
    const { items } = await drain();
    expect(items).toHaveLength(500);
    expect(items.filter(({ partnerTestMode }) => partnerTestMode !== false)).toEqual([]);
  });

  it('is no longer truncated when it is corrected to failed', async () => {
    const { emulator, drain } = await setUp();
    emulator.appendRuns([{ scanId: 'a', truncated: 'both' }]);
    emulator.correct('a', { status: 'failed' });
    expect((await drain('status=failed')).items).toMatchObject([{ scanId: 'a', resultTruncated: false }]);
  });
});

describe('cursors bound to their filters', () => {
  it('are rejected when the filters change, and accepted when they do not', async () => {
    const { page, get } = await setUp({ history: 10, switches: { cursorFilters: 'bound' } });
    const { nextCursor } = await page('limit=3');
    expect(ids((await page(`limit=9&status=completed&cursor=${nextCursor}`)).items)).not.toEqual([]);
    const { status, json } = await get(`/scans?environment=all&cursor=${nextCursor}`);
    expect(status).toBe(400);
    expect(json.error).toMatch(/Cursor/);
  });
});

describe('a page at the end without a cursor', () => {
  it.each([
    ['null', { items: [], nextCursor: null }],
    ['absent', { items: [] }],
  ] as const)('has nextCursor only when more entries follow (%s)', async (endCursor, end) => {
    const { emulator, page } = await setUp({ history: 10, switches: { endCursor } });
    const { nextCursor } = await page('limit=9&status=completed,failed&environment=all');
    expect(nextCursor).toMatch(/./);
    const last = await page(`status=completed,failed&environment=all&cursor=${nextCursor}`);
    expect(last.items).toHaveLength(1);
    expect({ ...last, items: [] }).toEqual(end);
    emulator.appendCount(2);
    expect((await page(`limit=1&environment=all&cursor=${nextCursor}`)).nextCursor).toMatch(/./);
  });
});

describe('since as another time of a run', () => {
  it.each(['submitted', 'completed'] as const)(
    'begins with the first run that was %s at that time or later',
    async (sinceMeaning) => {
      const { emulator, page, advance } = await setUp({ switches: { sinceMeaning } });
      const since = noon;
      advance(60_000);
      const [early, late] = [since - 1_000, since + 30_000];
      emulator.appendRuns([
        { scanId: 'early', submittedAt: early, completedAt: early, revision: 1 },
        { scanId: 'late', submittedAt: late, completedAt: late, revision: 1 },
        { scanId: 'early again', submittedAt: early, completedAt: early, revision: 1 },
      ]);
      expect(revisions((await page(`since=${since}`)).items)).toEqual(['late@1', 'early again@1']);
      emulator.set({ sinceMeaning: 'delivered' });
      expect(revisions((await page(`since=${since}`)).items)).toEqual(['early@1', 'late@1', 'early again@1']);
    },
  );
});

describe('a rejected cursor', () => {
  it.each(['400', '404', '410', '414', '422', '431'] as const)(
    'is answered with %s when that refusal is set',
    async (cursorRefusal) => {
      const { emulator, page, get } = await setUp({ history: 10, switches: { cursorRefusal } });
      const { nextCursor } = await page('limit=3');
      emulator.invalidateCursors();
      const { status, json } = await get(`/scans?cursor=${nextCursor}`);
      expect([status, json.error]).toEqual([Number(cursorRefusal), 'Der Cursor ist ungültig.']);
      expect((await page()).items).not.toEqual([]);
    },
  );

  it('is not answered when the refusal is a reset', async () => {
    const { emulator, page, get } = await setUp({ history: 10, switches: { cursorRefusal: 'reset' } });
    const { nextCursor } = await page('limit=3');
    emulator.invalidateCursors();
    await expect(get(`/scans?cursor=${nextCursor}`)).rejects.toThrow();
  });
});

it('issues and accepts cursors of the length that is set', async () => {
  const { drain, page } = await setUp({ history: 10, switches: { cursorLength: 9_000 } });
  const { nextCursor } = await page('limit=3');
  expect(nextCursor).toHaveLength(9_000);
  expect((await drain()).items).toHaveLength(10);
});
