import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { commitPage } from '../../src/sync/commit-page.js';
import { draftPage } from '../../src/sync/page-draft.js';
import { entryJson, pageJson, raw } from '../support/entries.js';
import { rawPage } from '../support/pages.js';
import { tables, useStore } from '../support/store.js';

const bench = useStore();

/** Commits a page as the engine does. */
async function commitAsEngine(entries: readonly string[], to: string) {
  const { lease } = await bench.takeFeed();
  const { cursor } = await bench.store.readPosition('default');
  const page = rawPage(pageJson(entries, to));
  const draft = draftPage(page);
  const { outcome } = await commitPage(
    { draft, completed: draft.entries },
    (content) => bench.store.commitPage({ lease, from: cursor, to, freshness: null, ...content }),
    bench.store,
    lease,
  );
  return outcome;
}

describe('a value that PostgreSQL refuses', () => {
  it.each([
    ['a number beyond numeric', { data: { n: raw('1e400000') } }],
    ['more decimals than numeric has', { data: { n: raw(`0.${'1'.repeat(16_384)}`) } }],
    // Of equal names the last counts, but PostgreSQL reads the first one too.
    ['nesting beyond the stack', { data: raw(`{},"x":${'['.repeat(50_000)}${']'.repeat(50_000)},"x":1`) }],
  ])('quarantines its entry alone: %s', async (name, over) => {
    const scan = (n: number) => `${name} ${n}`;
    const bad = entryJson({ scanId: scan(7), ...over });
    const entries = Array.from({ length: 20 }, (_, n) => (n === 7 ? bad : entryJson({ scanId: scan(n) })));
    const outcome = await commitAsEngine(entries, name);
    expect(outcome).toMatchObject({ kind: 'committed', counts: { inserted: 19, quarantined: 1 } });
    const [kept] = await bench.rows(
      sql<{ payload: Buffer }>`SELECT * FROM ${tables.quarantine} WHERE scan_id = ${scan(7)}`,
    );
    expect(kept).toMatchObject({ reason: 'refused', state: 'open', revision: 1 });
    expect(kept?.payload.toString()).toBe(bad);
    expect((await bench.store.readPosition('default')).cursor).toBe(name);
  });

  it('lets a lower, sound revision of the same page be stored', async () => {
    const scanId = 'two-revisions';
    const entries = [entryJson({ scanId }), entryJson({ scanId, revision: 2, data: { n: raw('1e400000') } })];
    await commitAsEngine(entries, 'two');
    expect(await bench.rows(sql`SELECT revision FROM ${tables.runs} WHERE scan_id = ${scanId}`)).toEqual([
      { revision: 1 },
    ]);
  });
});

it('looks for no refused value when the statement failed for another reason', async () => {
  const lost = Object.assign(new Error('gone'), { kind: 'connection', remedy: 'retry' });
  const draft = draftPage(rawPage(pageJson([entryJson()])));
  const store = {
    tryEntries: async () => {
      throw new Error('must not be called');
    },
  };
  const { lease } = await bench.takeFeed();
  await expect(commitPage({ draft, completed: draft.entries }, () => Promise.reject(lost), store, lease)).rejects.toBe(
    lost,
  );
});
