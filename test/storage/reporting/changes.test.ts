import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { choicesFrom } from '../../simulation/random-choices.js';
import { createCopier, readContents } from '../../support/copy-of-reports.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { documentOf, OLD, RandomWorld } from '../../support/random-world.js';
import { emptyReports, refresh } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const FEEDS = ['north', 'south'];
const STEPS = 40;

beforeEach(() => emptyReports(setup));

/** Creates the typed views that the copier reads. */
async function buildViews(): Promise<void> {
  const feed = await setup.takeFeed({ name: 'first' });
  await feed.commit([entryJson({ scanId: 'first', data: documentOf(1) })]);
  await refresh(setup);
}

describe('a copy that follows the changes', () => {
  it('equals the views after each of many random events', async () => {
    for (let seed = 1; seed <= cases(4, 60); seed += 1) {
      await emptyReports(setup);
      await buildViews();
      const choices = choicesFrom(seed);
      const copier = createCopier(setup.database);
      const world = new RandomWorld(choices, setup, setup.store, 8);
      const done: string[] = [];
      for (let step = 0; step < STEPS; step += 1) {
        done.push(await world.nextEvent(choices.pick(FEEDS)));
        while (await copier.poll(choices.between(1, 3)));
        expect(copier.contents(), `seed ${seed}: ${done.join(', ')}`).toEqual(await readContents(setup.database));
      }
    }
  });

  it('equals the views in the end when several feeds write at the same time', async () => {
    await buildViews();
    const databases = [...FEEDS, 'reader'].map(() => openTestDatabase(given.url, 1));
    const [reader = setup.database] = databases.slice(-1);
    const copier = createCopier(reader);
    let writing = FEEDS.length;
    const write = async (name: string, index: number) => {
      const settings = { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null };
      const store = createStore(databases[index] ?? setup.database, {
        ...settings,
        monotonic: () => performance.now(),
      });
      const world = new RandomWorld(choicesFrom(1_000 + index), setup, store, 30);
      for (let step = 0; step < 3 * STEPS; step += 1) await world.nextEvent(name);
      writing -= 1;
    };
    const read = async () => {
      let polls = 0;
      while (writing > 0) {
        await copier.poll(3);
        polls += 1;
      }
      while (await copier.poll(3));
      return polls;
    };
    const [polls] = await Promise.all([read(), ...FEEDS.map(write)]);
    expect(copier.contents()).toEqual(await readContents(setup.database));
    expect(polls).toBeGreaterThan(10);
    for (const database of databases) await database.close();
  });
});

describe('changes', () => {
  const change = async (scanId: string) => {
    const [row] = await setup.rows(sql`
      SELECT change, document_type_slug AS type, productive FROM scanfeed_reporting.changes WHERE scan_id = ${scanId}`);
    return row;
  };

  it('says what happened to a run, and whether it is productive', async () => {
    const feed = await setup.takeFeed();
    const entry = (over: Fields = {}) => entryJson({ scanId: 'a', ...over });
    await feed.commit([entry()]);
    expect(await change('a')).toEqual({ change: 'stored', type: 'rechnung', productive: true });
    await feed.commit([entry({ revision: 2 })]);
    expect(await change('a')).toEqual({ change: 'updated', type: 'rechnung', productive: true });
    await feed.commit([entry({ revision: 3, status: 'odd' })]);
    expect(await change('a')).toEqual({ change: 'withdrawn', type: 'rechnung', productive: false });
    await feed.commit([entry({ revision: 4, documentType: { slug: 'beleg', name: 'Beleg' } })]);
    expect(await change('a')).toEqual({ change: 'updated', type: 'beleg', productive: true });
    await feed.commit([entry({ revision: 5, status: 'failed', data: undefined })]);
    expect(await change('a')).toEqual({ change: 'withdrawn', type: 'rechnung', productive: false });
    await setup.operatorStore.deletedRuns.erase(['a']);
    expect(await change('a')).toEqual({ change: 'deleted', type: null, productive: false });
  });

  it('has the kinds that the documentation lists', async () => {
    const page = readFileSync(new URL('../../../docs/reporting.md', import.meta.url), 'utf8');
    const listed = /\n\| `change` \|.*\n\|---\|---\|\n((?:\|.*\n)*)/.exec(page)?.[1] ?? '';
    const [view] = await setup.rows(sql<{ text: string }>`SELECT pg_get_viewdef('scanfeed_reporting.changes') AS text`);
    const kinds = [...(view?.text ?? '').matchAll(/(?:THEN|ELSE|,)\s+'(\w+)'::text/g)].map(([, kind]) => kind);
    expect([...listed.matchAll(/^\| `(\w+)`/gm)].map(([, kind]) => kind)).toEqual(kinds);
    expect(kinds).toHaveLength(4);
  });

  it('has one row for a run that expired and was stored again', async () => {
    const feed = await setup.takeFeed();
    await feed.commit([entryJson({ scanId: 'a', deliveredAt: OLD, completedAt: OLD })]);
    await setup.operatorStore.deletedRuns.purgeRuns(365, 10);
    await feed.commit([entryJson({ scanId: 'a', revision: 2 })]);
    expect(await change('a')).toMatchObject({ change: 'stored' });
    expect(await setup.rows(sql`SELECT FROM scanfeed_reporting.changes WHERE scan_id = 'a'`)).toHaveLength(1);
  });

  it('lists nothing again when a page is delivered again', async () => {
    const feed = await setup.takeFeed();
    const entries = [entryJson({ scanId: 'a' }), entryJson({ scanId: 'a', revision: 2, status: 'odd' })];
    await feed.commit(entries);
    const numbers = () => setup.rows(sql`SELECT change_seq FROM scanfeed_reporting.changes`);
    const before = await numbers();
    await feed.commit(entries);
    expect(await numbers()).toEqual(before);
  });
});
