import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, readAllViews, refresh } from '../../support/reports.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

const setup = useStore(useDatabase(MIGRATED));
const RUNS = cases(8, 25);
const DAY = 86_400_000;

/** A few keys, so that each gets values of several types, including keys that collide or have another meaning. */
const key = fc.oneof(
  fc.constantFrom(
    'a',
    'A',
    'ä',
    'ae',
    'b',
    'select',
    'position',
    'scan_id',
    'a_b',
    '1',
    '',
    '字',
    "o'x",
    'a"b',
    'k\\',
    '__proto__',
  ),
  fc.string({ maxLength: 3 }).filter((text) => !text.includes('\0')),
);

type Leaf = 'number' | 'text' | 'date' | 'german' | 'boolean' | 'null' | 'empty';
interface Tree {
  readonly value: Leaf | readonly Tree[] | readonly (readonly [string, Tree])[];
  readonly kind: 'leaf' | 'array' | 'object';
}

const { document } = fc.letrec<{ tree: Tree; document: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc
      .constantFrom<Leaf>('number', 'text', 'date', 'german', 'boolean', 'null', 'empty')
      .map((value): Tree => ({ kind: 'leaf', value })),
    fc.array(tie('tree'), { maxLength: 3 }).map((value): Tree => ({ kind: 'array', value })),
    tie('document'),
  ),
  document: fc
    .uniqueArray(fc.tuple(key, tie('tree')), { maxLength: 5, selector: ([name]) => name })
    .map((value): Tree => ({ kind: 'object', value })),
}));

/** Returns the tree as JSON with distinct values; adds the values that the views must contain to `values`. */
function toJson(tree: Tree, next: () => number, values: string[]): string {
  if (tree.kind === 'array')
    return `[${(tree.value as readonly Tree[]).map((each) => toJson(each, next, values)).join()}]`;
  if (tree.kind === 'object') {
    const members = tree.value as readonly (readonly [string, Tree])[];
    return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${toJson(each, next, values)}`).join()}}`;
  }
  if (tree.value === 'null') return 'null';
  if (tree.value === 'empty') return '""';
  if (tree.value === 'boolean') return 'true';
  const number = next();
  const texts: Record<string, string> = {
    number: String(number),
    text: `w${number}`,
    german: `1.${number},5`,
    date: new Date(number * DAY).toISOString().slice(0, 10),
  };
  const text = texts[tree.value as string] ?? '';
  values.push(text);
  return tree.value === 'number' ? text : JSON.stringify(text);
}

/** Returns all texts and numbers in a value of a view. */
function leavesOf(value: unknown): string[] {
  if (value instanceof Date) return [value.toISOString().slice(0, 10)];
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(leavesOf);
  return [String(value)];
}

it('typed views contain every value when they are built for any document, and a second refresh finds nothing new', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(document, { minLength: 1, maxLength: 8 }), async (documents) => {
      await emptyReports(setup);
      const feed = await setup.takeFeed();
      let number = 1_000;
      const next = () => {
        number += 1;
        return number;
      };
      const values: string[] = [];
      for (const [index, tree] of documents.entries()) {
        const json = toJson(tree, next, values);
        await feed.commit([
          entryJson({ scanId: `scan-${index}`, data: undefined }).replace(/\}$/, () => `,"data":${json}}`),
        ]);
        if (index % 3 === 0) expect((await refresh(setup)).failed).toEqual([]);
        await readAllViews(setup);
      }
      expect((await refresh(setup)).failed).toEqual([]);
      expect(await refresh(setup)).toMatchObject({ built: [], columns: 0, views: 0 });
      const names = await setup.rows(sql<{ name: string }>`SELECT name FROM ${tables.reportViews}`);
      const found = new Set<string>();
      for (const { name } of names) {
        const rows = await setup.rows(sql`SELECT * FROM ${sql.id('scanfeed_reporting', name)}`);
        for (const leaf of leavesOf(rows)) found.add(leaf);
      }
      expect(values.filter((value) => !found.has(value))).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});
