import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { checkRun, withPending } from '../../../src/sync/page/check-entries.js';
import type { EntryBatch, PageContent } from '../../../src/sync/ports/index.js';
import { commitAsEngine, storeAlone } from '../../support/commit-as-engine.js';
import { entryJson, pageJson, raw } from '../../support/entries.js';
import { checkedPage, rawRun } from '../../support/pages.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();

const commitEntries = (entries: readonly string[], to: string) => commitAsEngine(setup, pageJson(entries, to), to);

describe('a value that PostgreSQL refuses', () => {
  it.each([
    ['a number beyond numeric', { data: { n: raw('1e400000') } }],
    ['more decimals than numeric has', { data: { n: raw(`0.${'1'.repeat(16_384)}`) } }],
  ])('quarantines only its entry when it is %s', async (name, over) => {
    const scan = (n: number) => `${name} ${n}`;
    const bad = entryJson({ scanId: scan(7), ...over });
    const entries = Array.from({ length: 20 }, (_, n) => (n === 7 ? bad : entryJson({ scanId: scan(n) })));
    const counts = await commitEntries(entries, name);
    expect(counts).toMatchObject({ inserted: 19, quarantined: 1 });
    const [kept] = await setup.rows(
      sql<{ payload: Buffer }>`SELECT * FROM ${tables.quarantine} WHERE scan_id = ${scan(7)}`,
    );
    expect(kept).toMatchObject({ reason: 'refused', state: 'open', revision: 1 });
    expect(kept?.payload.toString()).toBe(bad);
    expect((await setup.store.readPosition('default')).cursor).toBe(name);
  });

  it('quarantines the second entry when two are refused only together', async () => {
    await setup.rows(sql`CREATE UNIQUE INDEX one_name ON ${tables.runs} (file_name) WHERE file_name LIKE 'twice%'`);
    const entries = [1, 2, 3].map((n) => entryJson({ scanId: `together ${n}`, fileName: n === 2 ? 'x' : 'twice.pdf' }));
    const counts = await commitEntries(entries, 'together');
    expect(counts).toMatchObject({ inserted: 2, quarantined: 1 });
    expect(await setup.rows(sql`SELECT scan_id FROM ${tables.quarantine} WHERE scan_id LIKE 'together%'`)).toEqual([
      { scan_id: 'together 3' },
    ]);
    await setup.rows(sql`DROP INDEX ${sql.id('scanfeed', 'one_name')}`);
  });

  it('quarantines the entry when a deferred constraint refuses it', async () => {
    await setup.rows(sql`CREATE TABLE known_files (name text PRIMARY KEY)`);
    await setup.rows(sql`INSERT INTO known_files VALUES ('a.pdf')`);
    await setup.rows(sql`ALTER TABLE ${tables.runs} ADD CONSTRAINT known FOREIGN KEY (file_name) REFERENCES known_files
      DEFERRABLE INITIALLY DEFERRED NOT VALID`);
    const entries = [1, 2].map((n) => entryJson({ scanId: `deferred ${n}`, fileName: n === 1 ? 'a.pdf' : 'b.pdf' }));
    expect(await commitEntries(entries, 'deferred')).toMatchObject({ inserted: 1, quarantined: 1 });
    await setup.rows(sql`ALTER TABLE ${tables.runs} DROP CONSTRAINT known`);
  });

  it.each([
    [
      'ADD CONSTRAINT partner_known CHECK (partner_name <> $$unbekannt$$)',
      'DROP CONSTRAINT partner_known',
      'partner_known',
    ],
    ['ALTER partner_name SET NOT NULL', 'ALTER partner_name DROP NOT NULL', 'NOT NULL of runs.partner_name'],
  ])('names the constraint when one was added to the table: %s', async (add, drop, name) => {
    const alter = (change: string) => setup.rows(sql`ALTER TABLE ${tables.runs} ${sql.raw(change)}`);
    await setup.rows(sql`DELETE FROM ${tables.runs}`);
    await alter(add);
    const partnerName = name === 'partner_known' ? 'unbekannt' : null;
    const entries = [entryJson({ scanId: `good ${name}` }), entryJson({ scanId: `bad ${name}`, partnerName })];
    expect(await commitEntries(entries, name)).toMatchObject({ inserted: 1, quarantined: 1 });
    await alter(drop);
    expect(
      await setup.rows(sql`SELECT reason, detail FROM ${tables.quarantine} WHERE scan_id = ${`bad ${name}`}`),
    ).toEqual([{ reason: 'constraint', detail: `constraint ${name} of the database` }]);
  });

  it('lets a lower revision be stored when the higher one on the page is refused', async () => {
    const scanId = 'two-revisions';
    const entries = [entryJson({ scanId }), entryJson({ scanId, revision: 2, data: { n: raw('1e400000') } })];
    await commitEntries(entries, 'two');
    expect(await setup.rows(sql`SELECT revision FROM ${tables.runs} WHERE scan_id = ${scanId}`)).toEqual([
      { revision: 1 },
    ]);
  });
});

it('searches for no refused value when the statement failed for another reason', async () => {
  const lost = Object.assign(new Error('gone'), { kind: 'connection', action: 'retry' });
  const { lease } = await setup.takeFeed();
  const tryEntries = () => Promise.reject(new Error('must not be called'));
  const page = checkedPage(pageJson([entryJson()]));
  const store = { ...setup.store, tryEntries, commitPage: () => Promise.reject(lost) };
  const stored = storeAlone(page, store, lease, null);
  await expect(stored).rejects.toBe(lost);
});

it('keeps no repaired original of a result when the result is refused and its feed entry is stored', async () => {
  const page = checkedPage(pageJson([entryJson({ data: undefined, resultTruncated: true })]));
  const result = checkRun(rawRun(entryJson({ data: { text: raw('"\\u0000"') } })));
  const [entry] = page.entries;
  if (entry === undefined || result === null) throw new Error('nothing to store');
  expect(result.original).toMatchObject({ state: 'repaired' });
  const entries = [{ ...withPending(entry, 'invalid_result'), result }];
  const refused = Object.assign(new Error('refused'), { kind: 'data', action: 'reject' });
  const refuseAnswers = async (batch: EntryBatch) => {
    if (batch.some(({ isAnswer }) => isAnswer)) throw refused;
  };
  const committed: PageContent[] = [];
  const commitPage = async ({ batch, quarantine }: PageContent) => {
    await refuseAnswers(batch);
    committed.push({ batch, quarantine });
    return { kind: 'fenced' } as const;
  };
  const { lease } = await setup.takeFeed();
  const tryEntries = (_: unknown, batch: EntryBatch) => refuseAnswers(batch);
  await storeAlone({ ...page, entries }, { ...setup.store, tryEntries, commitPage }, lease, null);
  expect(committed).toMatchObject([{ batch: [{ pending: 'invalid_result' }], quarantine: [] }]);
});
