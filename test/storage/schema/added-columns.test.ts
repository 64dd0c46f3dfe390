import { readdirSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { choicesFrom } from '../../simulation/random-choices.js';
import { entryJson } from '../../support/entries.js';
import { RandomWorld } from '../../support/random-world.js';
import { readAllViews, refresh } from '../../support/reports.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();

it('keeps every column of a superseded revision', async () => {
  const feed = await setup.takeFeed();
  const entry = (revision: number) => entryJson({ scanId: 'corrected', revision, markdown: `# ${revision}` });
  await feed.commit([entry(1)]);
  const [stored] = await setup.rows(sql<object>`SELECT to_jsonb(run) AS row FROM ${tables.runs} AS run`);
  await feed.commit([entry(2)]);
  const [kept] = await setup.rows(
    sql<object>`SELECT to_jsonb(run) - 'superseded_at' AS row FROM ${tables.runHistory} AS run`,
  );
  expect(kept).toEqual(stored);
  const missing = await setup.rows(sql<{ name: string }>`
    SELECT attname AS name FROM pg_attribute
    WHERE attrelid = 'scanfeed.run_history'::regclass AND attnum > 0 AND NOT attisdropped
      AND pg_get_functiondef('scanfeed.keep_superseded_run'::regproc) !~ ('OLD.' || attname || '[, )]|' || '[(]superseded_at,')
  `);
  expect(missing).toEqual([]);
});

/** Every name that a statement gives to something, and every column. */
async function namesInUse(): Promise<readonly string[]> {
  const folder = new URL('../../../src/storage/', import.meta.url);
  const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(new URL(file, folder), 'utf8'));
  const named = texts
    .flatMap((text) => [...text.matchAll(/\bAS (?:\([^()]*\)|"?(\w+)"?)/g)])
    .map(([, name]) => name ?? '');
  const lists = texts
    .flatMap((text) => [...text.matchAll(/\bAS \w+ \(([\w, ]+)/g)])
    .flatMap(([, list]) => list?.split(', '));
  const columns = await setup.rows(sql<{ name: string }>`
    SELECT DISTINCT attname AS name FROM pg_attribute JOIN pg_class AS class ON class.oid = attrelid
    WHERE relnamespace = 'scanfeed'::regnamespace AND attnum > 0`);
  const all = [...named, ...lists, ...columns.map(({ name }) => name)];
  return [...new Set(all.filter((name) => name !== undefined && /^[a-z_]+$/.test(name)))] as string[];
}

it('works when the tables of runs have columns of others, whatever their names are', async () => {
  const names = await namesInUse();
  expect(names).toEqual(expect.arrayContaining(['position', 'number', 'verdict', 'holder']));
  for (const name of ['runs', 'run_history', 'quarantine']) {
    const added = names.map((column) => sql`ADD COLUMN IF NOT EXISTS ${sql.id(column)} point`);
    await setup.rows(sql`ALTER TABLE ${sql.id('scanfeed', name)} ${sql.join(added)}`);
  }
  const world = new RandomWorld(choicesFrom(1), setup, setup.store, 6);
  const events = new Set<string>();
  for (let step = 0; step < 150; step += 1) events.add(await world.nextEvent(step % 2 ? 'north' : 'south'));
  expect(events.size).toBeGreaterThan(12);
  const feed = await setup.takeFeed();
  await feed.commit([1, 2, 2].map((revision) => entryJson({ scanId: 'repeated', revision })));
  await feed.commit([2, 3, 3].map((revision) => entryJson({ scanId: 'repeated', revision, data: { neu: revision } })));
  await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE history_of IS NULL`);
  expect((await refresh(setup)).failed).toEqual([]);
  await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE history_of IS NULL`);
  expect((await refresh(setup)).failed).toEqual([]);
  await readAllViews(setup);
  expect(await setup.rows(sql`SELECT revision FROM ${tables.runHistory} WHERE scan_id = 'repeated'`)).toEqual([
    { revision: 2 },
  ]);
});
