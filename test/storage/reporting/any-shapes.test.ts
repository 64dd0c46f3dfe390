import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { entryJson, RawJson, raw } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, refresh } from '../../support/reports.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';
import {
  type Cell,
  type Column,
  cellOf,
  isEmpty,
  isObject,
  type Json,
  rowsOf,
  type Shapes,
  shapesIn,
  unfitNames,
  type View,
  valueAt,
} from './oracle/documents.js';
import { type Decimal, germanNumber, jsonNumber, shortText, sumOf } from './oracle/numbers.js';

const setup = useStore(useDatabase(MIGRATED));
/** The number of document types, tried in groups. */
const TYPES = cases(20, 1_000);
const AT_A_TIME = 10;
/** The number of document types whose documents arrive in two orders. */
const ORDERS = cases(20, 300);

const number = fc
  .constantFrom('1.234', '0.500', '2.5', '1000', '1e3', '-7', '12345678901234567890.12', '0', '-0.075', '1E-3', '17.00')
  .map(raw);
const text = fc.constantFrom(
  ...['1.234,56', '1.234', '0.500', '0,5', '12', '7,50 €', '\u0663', '\uff11\uff12', 'abc', 'true', ' ', '1\u00a0000'],
  ...['2026-02-28', '2026-02-30', '9999-12-31', '0001-01-01', '\uff12026-01-01', '2026-02-2\u0668', '31.12.2026'],
);
const time = fc.constantFrom(
  ...['2026-02-28T10:00:00Z', '2026-02-28T10:00:00.123456+05:30', '2026-02-30T10:00:00Z', '2026-01-01T24:00:00Z'],
  ...['9999-12-31T23:59:59Z', '0001-01-01T00:00:00+02:00', '1000-01-01T00:00:00+14:00', '9000-12-31T23:59:59-14:00'],
  ...['0999-12-31T23:59:59Z', '9001-01-01T00:00:00Z', '2026-02-28T10:00:00'],
);
const scalar = fc.oneof({ arbitrary: number, weight: 3 }, { arbitrary: text, weight: 2 }, time, fc.boolean());
const item: fc.Arbitrary<Json> = fc
  .tuple(
    scalar,
    fc.dictionary(
      fc.constantFrom('wert', 'sub', 'nr'),
      fc.oneof(
        { arbitrary: scalar as fc.Arbitrary<Json>, weight: 5 },
        fc.record({ x: scalar }),
        fc.array(fc.record({ tief: scalar }), { minLength: 1, maxLength: 2 }),
      ),
      { maxKeys: 3 },
    ),
  )
  .map(([id, fields]) => ({ ...fields, id }));
/** The shapes that a field can have. */
const SHAPES: Readonly<Record<string, fc.Arbitrary<Json | undefined>>> = {
  absent: fc.constant(undefined),
  null: fc.constant(null),
  empty: fc.constantFrom<Json>('', [], {}),
  number,
  text,
  time,
  boolean: fc.boolean(),
  object: item,
  'object with dynamic keys': fc.dictionary(
    fc.integer({ min: 1, max: 30 }).map((day) => `2026-11-${day}`),
    scalar,
    {
      maxKeys: 4,
    },
  ),
  items: fc.array(item, { minLength: 1, maxLength: 3 }),
  'list of scalars': fc.array(scalar, { minLength: 1, maxLength: 3 }),
  'list of lists': fc.array(fc.array(item, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 }),
  'mixed list': fc.array(fc.oneof(item, scalar, fc.constant(null), fc.constant({})), { minLength: 1, maxLength: 4 }),
};
/** Documents whose fields have one type of scalars each, so that the order of arrival decides names only. */
const menge = number.map((value) => ({ menge: value }));
const kopf = fc.record({ nr: number, positionen: fc.array(menge, { minLength: 1, maxLength: 2 }) });
const simple: fc.Arbitrary<Record<string, Json>> = fc.record(
  {
    betrag: fc.oneof(
      number,
      number.map((wert) => ({ wert })),
      number.map((wert) => [{ wert }]),
    ),
    positionen: fc.oneof(fc.constant('siehe Anlage'), menge, fc.array(menge, { minLength: 1, maxLength: 2 })),
    kopf: fc.oneof(fc.constant('x'), kopf, fc.array(kopf, { minLength: 1, maxLength: 2 })),
    tags: fc.oneof(fc.constant('rot'), fc.constant<Json>(['rot', 'blau']), fc.record({ tag: fc.constant('rot') })),
  },
  { requiredKeys: [] },
);
const KEYS = ['betrag', 'datum', 'positionen', 'lieferant', 'x'];

/** Documents of a type, in which most values of a field have one shape. */
const documents = fc.tuple(...KEYS.map(() => fc.constantFrom(...Object.keys(SHAPES)))).chain((usual) => {
  const any = fc.oneof(...Object.values(SHAPES));
  const fields = usual.map((name) =>
    fc.oneof({ arbitrary: SHAPES[name] ?? any, weight: 4 }, { arbitrary: any, weight: 1 }),
  );
  const document = fc
    .tuple(...fields)
    .map((values) =>
      Object.fromEntries(
        KEYS.flatMap((key, place) => (values[place] === undefined ? [] : [[key, values[place] as Json]])),
      ),
    );
  const few = fc.array(document, { minLength: 3, maxLength: 9 });
  // The first one often, so that the shapes of others are exceptions.
  const all = few.map((each) => [...each, ...Array<(typeof each)[number]>(40).fill(each[0] ?? {})]);
  return fc.oneof(
    { arbitrary: few, weight: 3 },
    all.chain((each) => fc.shuffledSubarray(each, { minLength: each.length })),
  );
});

async function viewsOf(slug: string): Promise<readonly View[]> {
  const views = await setup.rows(sql<{ name: string; arrays: string[][] }>`
    SELECT name, arrays FROM ${tables.reportViews} WHERE document_type_slug = ${slug} AND history_of IS NULL ORDER BY id`);
  const found = await setup.rows(sql<{ view: string; name: string; type: string; path: string }>`
    SELECT view_name AS view, column_name AS name, data_type AS type, json_path AS path FROM scanfeed_reporting.columns
    WHERE document_type_slug = ${slug} AND json_path IS NOT NULL ORDER BY position`);
  return views.map((view) => {
    const own = found.filter((each) => each.view === view.name);
    const pathOf = (path: string) => JSON.parse(`[${path.split('[*]').at(-1)?.slice(1).replaceAll('".', '",')}]`);
    const columns = own.map(({ name, type, path }) => ({ name, type, path: pathOf(path.replace(/^\$/, '')) }));
    return { ...view, columns };
  });
}

/** A row as the view has it. */
interface Shown {
  readonly scan_id: string;
  readonly positions: readonly number[];
  readonly unfit: readonly string[];
  readonly other: unknown;
  readonly cells: Readonly<Record<string, string | null>>;
}

function readRows({ name, arrays, columns }: View): Promise<Shown[]> {
  const positions = arrays.map((_, index) => (index === arrays.length - 1 ? 'position' : `position_${index + 1}`));
  const cell = ({ name: column, type }: Column) => {
    if (type === 'numeric') return sql`trim_scale(${sql.id(column)})::text`;
    if (type.startsWith('timestamp')) return sql`(extract(epoch FROM ${sql.id(column)}) * 1000000)::bigint::text`;
    return sql`${sql.id(column)}::text`;
  };
  const names = columns.map(({ name }) => sql.lit(name));
  return setup.rows(sql<Shown>`
    SELECT scan_id, ARRAY[${sql.join(positions.map((each) => sql.id(each)))}]::int[] AS positions,
      ARRAY(SELECT unnest(unfit_fields) AS name ORDER BY name) AS unfit, other_fields AS other,
      json_object(ARRAY[${sql.join(names)}]::text[], ARRAY[${sql.join(columns.map(cell))}]::text[]) AS cells
    FROM ${sql.id('scanfeed_reporting', name)} ORDER BY scan_id, 2`);
}

/** A cell as {@link readRows} writes it. */
function written(cell: Cell, shown: string | null | undefined): string | null {
  if (cell === 'any') return shown ?? 'not shown';
  return cell === null || typeof cell === 'string' ? cell : shortText(cell);
}

const isNumber = (cell: Cell): cell is Decimal => typeof cell === 'object' && cell !== null;

/**
 * Compares the rows of a view, and the sums, counts and marks of its columns, with the oracle.
 * @param shapes how often each shape was found when the view was built
 */
async function checkView(
  view: View,
  views: readonly View[],
  shapes: Shapes,
  documents: readonly { readonly scanId: string; readonly root: Json }[],
) {
  const shown = await readRows(view);
  const expected = documents.flatMap((document) => rowsOf({ ...document, positions: [] }, view.arrays));
  const rows = expected.map(({ scanId, positions, root }, place) => ({
    scan_id: scanId,
    positions,
    unfit: unfitNames(root, view, views, shapes),
    cells: Object.fromEntries(
      view.columns.map(({ name, type, path }) => [
        name,
        written(cellOf(valueAt(root, path), type), shown[place]?.cells[name]),
      ]),
    ),
  }));
  expect(shown.map(({ other: _, ...row }) => row)).toEqual(rows);
  for (const { name, type, path } of view.columns) {
    const column = sql.id(name);
    const read = type === 'text' ? sql`scanfeed_reporting.german_number(${column})` : column;
    const sum = type === 'text' || type === 'numeric' ? sql`trim_scale(sum(${read}))::text` : sql`NULL`;
    const [figures] = await setup.rows(sql<Record<string, unknown>>`
      SELECT ${sum} AS sum, count(${column})::int AS values,
        count(*) FILTER (WHERE ${name} = ANY (unfit_fields))::int AS marks
      FROM ${sql.id('scanfeed_reporting', view.name)}`);
    const cells = expected.map(({ root }) => cellOf(valueAt(root, path), type));
    const german = cells.flatMap((cell) => (typeof cell === 'string' ? [germanNumber(cell)] : []));
    const numbers =
      type === 'text' ? german.flatMap((each) => (each === null ? [] : [jsonNumber(each)])) : cells.filter(isNumber);
    expect({ view: view.name, name, ...figures }).toEqual({
      view: view.name,
      name,
      sum: type === 'text' || type === 'numeric' ? sumOf(numbers) : null,
      values: cells.filter((cell) => cell !== null).length,
      marks: expected.filter(({ root }) => unfitNames(root, view, views, shapes).includes(name)).length,
    });
  }
  return shown;
}

/** Whether what PostgreSQL returned is the value. */
function isSame(shown: unknown, value: Json | undefined): boolean {
  const plain = JSON.stringify(value, (_, each) => (each instanceof RawJson ? Number(each.text) : each));
  const sorted = (json: unknown): unknown =>
    typeof json !== 'object' || json === null || Array.isArray(json)
      ? Array.isArray(json)
        ? json.map(sorted)
        : json
      : Object.entries(json)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, each]) => [key, sorted(each)]);
  return JSON.stringify(sorted(shown)) === JSON.stringify(sorted(JSON.parse(plain ?? 'null')));
}

type Rows = ReadonlyMap<View, readonly Shown[]>;

/** Returns the values of a row that are in no column of it, in no row of an array, and not in `other_fields`. */
function lost(all: Rows, view: View, row: Shown, value: Json, path: readonly string[]): readonly string[] {
  const whole = path.length === 0 && !isObject(value) ? row.other : valueAt(row.other as Json, path);
  if (isEmpty(value) || isSame(whole, value)) return [];
  const columns = view.columns.filter((column) => JSON.stringify(column.path) === JSON.stringify(path));
  const shows = (type: string) => columns.some((column) => column.type === type && row.cells[column.name] !== null);
  if (shows('jsonb')) return [];
  if (isObject(value)) {
    // An element without its array is a row of the array's view, or has columns of its own if objects came first.
    const rows = path.length > 0 ? elementRows(all, view, row, path) : null;
    if (rows !== null && lost(all, rows.view, rows.find([...row.positions, 1]), value, []).length === 0) return [];
    return Object.entries(value).flatMap(([key, each]) => lost(all, view, row, each, [...path, key]));
  }
  if (Array.isArray(value)) {
    const rows = elementRows(all, view, row, path);
    if (rows === null) return value.every(isEmpty) ? [] : [`${view.name} ${path.join('.')} ${JSON.stringify(value)}`];
    return value.flatMap((each: Json, index) =>
      isEmpty(each) ? [] : lost(all, rows.view, rows.find([...row.positions, index + 1]), each, []),
    );
  }
  const isShown = value instanceof RawJson ? shows('numeric') : columns.some(({ name }) => row.cells[name] !== null);
  return isShown ? [] : [`${view.name} ${path.join('.')} ${JSON.stringify(value)}`];
}

function elementRows(all: Rows, view: View, row: Shown, path: readonly string[]) {
  const arrays = JSON.stringify([...view.arrays, path]);
  const inner = [...all.keys()].find((each) => JSON.stringify(each.arrays) === arrays);
  if (inner === undefined) return null;
  const find = (positions: readonly number[]) => {
    const isIt = (each: Shown) => each.scan_id === row.scan_id && String(each.positions) === String(positions);
    return all.get(inner)?.find(isIt) ?? { ...row, positions, cells: {}, other: null };
  };
  return { view: inner, find };
}

it(`typed views show what an independent oracle sees, or mark it, when fields change their shape (${TYPES} types)`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(documents, { minLength: AT_A_TIME, maxLength: AT_A_TIME }), async (types) => {
      await emptyReports(setup);
      const feed = await setup.takeFeed();
      const stored = types.flatMap((type, slug) =>
        type.map((root, place) => ({
          slug: `t${slug}`,
          scanId: `t${slug}-${String(place).padStart(2, '0')}`,
          root,
          place,
        })),
      );
      // In three parts, so that later documents meet the columns of earlier ones.
      for (const part of [0, 1, 2]) {
        const entries = stored.filter(({ place }) => place % 3 === part);
        await feed.commit(
          entries.map(({ slug, scanId, root }) =>
            entryJson({ scanId, documentType: { slug, name: slug }, data: root }),
          ),
        );
        // What is new is marked even before it has columns.
        const known = stored.filter(({ place }) => place % 3 <= part);
        for (const [slug] of types.entries()) {
          const own = known.filter((each) => each.slug === `t${slug}`);
          const shapes = shapesIn(own.filter(({ place }) => place % 3 < part).map(({ root }) => root));
          const views = await viewsOf(`t${slug}`);
          for (const view of views) await checkView(view, views, shapes, own);
        }
        expect((await refresh(setup)).failed).toEqual([]);
      }
      for (const [slug] of types.entries()) {
        const own = stored.filter((each) => each.slug === `t${slug}`);
        const all = new Map<View, readonly Shown[]>();
        const views = await viewsOf(`t${slug}`);
        const shapes = shapesIn(own.map(({ root }) => root));
        for (const view of views) all.set(view, await checkView(view, views, shapes, own));
        const top = [...all.keys()].find(({ arrays }) => arrays.length === 0);
        if (top === undefined) continue;
        for (const [place, row] of (all.get(top) ?? []).entries())
          expect(lost(all, top, row, own[place]?.root ?? null, [])).toEqual([]);
      }
    }),
    { numRuns: TYPES / AT_A_TIME, endOnFailure: true },
  );
});

it(`typed views mark the same values whatever the order in which documents arrive (${ORDERS} types)`, async () => {
  const shuffled = <T>(all: readonly T[]) => fc.shuffledSubarray([...all], { minLength: all.length });
  const orders = fc
    .array(simple, { minLength: 3, maxLength: 9 })
    .map((few) => [...few, ...Array<Record<string, Json>>(40).fill(few[0] ?? {})].map((root, id) => ({ root, id })))
    .chain((all) => fc.tuple(shuffled(all), shuffled(all), fc.integer({ min: 1, max: 40 })));
  await fc.assert(
    fc.asyncProperty(orders, async ([first, second, split]) => {
      const [one, other] = [await marksOf(first, split), await marksOf(second, 41 - split)];
      // An object has columns only if it arrived before an array, and it is a row in the view of the array in any case.
      const both = (marks: readonly string[]) =>
        marks.filter((mark) => [one, other].every(({ places }) => places.has(mark.split('| ')[1] ?? '')));
      expect(both(one.marks)).toEqual(both(other.marks));
    }),
    { numRuns: ORDERS, endOnFailure: true },
  );
});

/** Stores documents in two parts. Returns the columns and views by their places, and what each row names in `unfit_fields`. */
async function marksOf(documents: readonly { readonly root: Json; readonly id: number }[], split: number) {
  await emptyReports(setup);
  const feed = await setup.takeFeed();
  for (const part of [documents.slice(0, split), documents.slice(split)]) {
    const type = { slug: 't', name: 't' };
    await feed.commit(part.map(({ root, id }) => entryJson({ scanId: `scan-${id}`, documentType: type, data: root })));
    expect((await refresh(setup)).failed).toEqual([]);
  }
  const views = await viewsOf('t');
  const named = new Map(views.map(({ name, arrays }) => [name, JSON.stringify(arrays)]));
  const places = new Set(named.values());
  const marks: string[] = [];
  for (const view of views) {
    const row = JSON.stringify(view.arrays);
    const columns = new Map(view.columns.map(({ name, path }) => [name, `${row} ${JSON.stringify(path)}`]));
    for (const place of columns.values()) places.add(place);
    for (const { scan_id, positions, unfit } of await readRows(view))
      marks.push(...unfit.map((name) => `${row} ${scan_id} ${positions}| ${columns.get(name) ?? named.get(name)}`));
  }
  return { places, marks: marks.sort() };
}
