import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();
let scans = 0;
/** A separate scan id for each test. */
const newScan = () => `scan-${++scans}`;

describe('quarantine', () => {
  const entriesOf = (scanId: string) =>
    setup.rows(
      sql<{ state: string; times_seen: number; payload: Buffer }>`
        SELECT * FROM ${tables.quarantine} WHERE scan_id = ${scanId} ORDER BY id`,
    );

  it('stores the whole entry once when it is delivered repeatedly', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const bad = entryJson({ scanId, status: 'archived', data: { n: raw('1.10') } });
    expect(await feed.counts([bad, bad])).toMatchObject({ quarantined: 1 });
    expect(await feed.counts([bad])).toMatchObject({ quarantined: 1 });
    const [kept, ...others] = await entriesOf(scanId);
    expect(others).toEqual([]);
    expect(kept).toMatchObject({ state: 'open', times_seen: 2, reason: 'status', revision: 1 });
    expect(kept?.payload.toString()).toBe(bad);
  });

  it('does not count an entry when it is the original of a repaired one', async () => {
    const feed = await setup.takeFeed();
    const repaired = entryJson({ scanId: newScan(), partnerName: raw('"a\\u0000"') });
    expect(await feed.counts([repaired])).toMatchObject({ inserted: 1, quarantined: 0 });
    expect(await feed.counts([repaired])).toMatchObject({ unchanged: 1, quarantined: 0 });
  });

  it('closes an entry when the same or a newer revision is stored', async () => {
    const feed = await setup.takeFeed();
    const [same, newer, together] = [newScan(), newScan(), newScan()];
    const bad = (scanId: string) => entryJson({ scanId, status: 'archived' });
    await feed.commit([bad(same), bad(newer)]);
    await feed.commit([entryJson({ scanId: same }), entryJson({ scanId: newer, revision: 2 })]);
    await feed.commit([bad(together), entryJson({ scanId: together, revision: 2 })]);
    expect(await feed.counts([bad(newer)])).toMatchObject({ quarantined: 0 });
    expect((await entriesOf(same))[0]).toMatchObject({ state: 'replayed' });
    expect((await entriesOf(newer))[0]).toMatchObject({ state: 'discarded', times_seen: 2 });
    expect((await entriesOf(together))[0]).toMatchObject({ state: 'discarded' });
  });
});

describe('an entry with a repaired and a refused copy on one page', () => {
  it('is open when it is not stored yet, and repaired when it is', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const entry = { scanId, revision: 1, detail: '', payload: Buffer.from('{}') };
    const open = { ...entry, reason: 'refused', state: 'open' } as const;
    const repaired = { ...entry, reason: 'text', state: 'repaired' } as const;
    const states = () => setup.rows(sql`SELECT state, reason FROM ${tables.quarantine} WHERE scan_id = ${scanId}`);
    await feed.commit([], { quarantine: [repaired, open] });
    expect(await states()).toEqual([{ state: 'open', reason: 'refused' }]);
    await feed.commit([entryJson({ scanId })], { quarantine: [repaired] });
    expect(await states()).toEqual([{ state: 'repaired', reason: 'text' }]);
  });
});
