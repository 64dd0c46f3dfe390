import { groupBy } from '../../core/group-by.js';
import type { SeenField, SeenKind } from './find-fields.js';
import { fixedColumnNames } from './fixed-columns.js';
import { columnName, type NameRules, viewName } from './names.js';
import {
  COMMON,
  type ColumnType,
  leastShareOf,
  pathKey,
  REPORT_LIMITS,
  type ReportColumn,
  type ReportView,
  shareOf,
  viewKey,
} from './report-view.js';

/** Names that must not be used. */
export interface NamingContext {
  /** Names of the relations in the schema of the reports. */
  readonly takenNames: ReadonlySet<string>;
  /** Reserved words, which cannot be names of columns. */
  readonly reserved: ReadonlySet<string>;
}

const SCALARS: readonly ColumnType[] = ['number', 'boolean', 'date', 'timestamp', 'text'];
const isScalar = (kind: SeenKind): kind is ColumnType => SCALARS.includes(kind as ColumnType);

/**
 * Returns the views extended by new fields. Only appends: views after the views, columns after the columns. The type of a column is
 * the one that most values of the field had when it was first seen. If values of other types follow, a second column, `…__text`,
 * has all of them as text, and `…__number` those that are numbers. Arrays that are not tables become a JSON column. Keys of a
 * map get none. Pure.
 */
export function decideColumns(
  known: readonly ReportView[],
  found: readonly SeenField[],
  naming: NamingContext,
): readonly ReportView[] {
  const seen = withoutMaps(known, found);
  const views = addViews(known, seen, naming);
  const fields = groupBy(
    seen.map((field) => ofElement(field, views)),
    viewKey,
  );
  return [...views.values()].map((view) => {
    const own = fields.get(viewKey(view));
    return own === undefined
      ? view
      : addColumns(view, own, views, { fixed: fixedColumnNames(view), reserved: naming.reserved });
  });
}

/**
 * Returns the document types of which a field or array is left out because only a few of the documents have it. Pure.
 * @param decided the views with the columns of what was found
 */
export function typesLeavingOutFields(
  known: readonly ReportView[],
  found: readonly SeenField[],
  decided: readonly ReportView[],
  naming: NamingContext,
): ReadonlySet<string> {
  const wide = wideTypes(decided);
  if (wide.size === 0) return wide;
  const common = found.flatMap((field) => (wide.has(field.slug) ? [{ ...field, documents: COMMON }] : []));
  const sizes = new Map(decided.map((view) => [viewKey(view), view.columns.length]));
  const larger = decideColumns(known, common, naming).filter(
    (view) => view.columns.length > (sizes.get(viewKey(view)) ?? -1),
  );
  return new Set(larger.map(({ slug }) => slug));
}

/** Returns the document types that fill the share of a limit from which on rare fields or arrays are left out. */
function wideTypes(views: readonly ReportView[]): ReadonlySet<string> {
  const { columns, viewsOfType } = REPORT_LIMITS;
  const types = [...groupBy(views, ({ slug }) => slug)].filter(
    ([, ofType]) =>
      ofType.length >= leastShareOf(viewsOfType) || ofType.some((view) => view.columns.length >= leastShareOf(columns)),
  );
  return new Set(types.map(([slug]) => slug));
}

const DIGIT = /\d/;
type Place = Pick<SeenField, 'slug' | 'arrays' | 'path'>;

/** Leaves out fields under keys of which an object has too many that differ only in their digits, such as days. */
function withoutMaps(known: readonly ReportView[], seen: readonly SeenField[]): readonly SeenField[] {
  const slugs = new Set(seen.map(({ slug }) => slug));
  const views = known.filter(({ slug }) => slugs.has(slug));
  const places = views.flatMap(({ slug, arrays, columns }) =>
    [{ path: [] }, ...columns].map(({ path }) => ({ slug, arrays, path })),
  );
  const keysOf = new Map<string, Set<string>>();
  for (const [place, key] of [...places, ...seen].flatMap(keysWithDigits)) {
    keysOf.set(place, (keysOf.get(place) ?? new Set()).add(key));
  }
  const isMap = (place: string) => (keysOf.get(place)?.size ?? 0) > REPORT_LIMITS.keysWithDigits;
  return seen.filter((field) => !keysWithDigits(field).some(([place]) => isMap(place)));
}

/** Returns the keys with digits that lead to a field, with their place, which is the same for keys that differ only in digits. */
function keysWithDigits({ slug, arrays, path }: Place): readonly (readonly [place: string, key: string])[] {
  if (![...arrays, path].some((each) => each.some((key) => DIGIT.test(key)))) return [];
  const keys = [...arrays, path].flatMap((each) => [...each, '[]']);
  return keys.flatMap((key, index) => {
    if (!DIGIT.test(key)) return [];
    const shape = key.replace(/[\da-f]*\d[\da-f]*/gi, '#'); // hexadecimal digits too, for identifiers
    return [[JSON.stringify([slug, ...keys.slice(0, index), shape]), key] as const];
  });
}

/**
 * Adds the view and the history view of each type, and the views of arrays: outer ones before nested ones, so a view beyond the
 * limits excludes the views nested in it.
 */
function addViews(
  known: readonly ReportView[],
  seen: readonly SeenField[],
  { takenNames }: NamingContext,
): ReadonlyMap<string, ReportView> {
  const views = new Map(known.map((view) => [viewKey(view), view]));
  const taken = new Set([...takenNames, ...known.map(({ name }) => name)]);
  const ofType = new Map<string, number>();
  for (const { slug } of known) ofType.set(slug, (ofType.get(slug) ?? 0) + 1);
  const add = (slug: string, arrays: ReportView['arrays'], history: boolean) => {
    const name = viewName(slug, arrays, taken, history ? '_history' : '');
    const view = { id: null, name, slug, arrays, history, storesRows: false, columns: [] };
    taken.add(name);
    ofType.set(slug, (ofType.get(slug) ?? 0) + 1);
    views.set(viewKey(view), view);
  };
  const rows = seen.filter(({ kind }) => kind === 'row').sort((a, b) => a.arrays.length - b.arrays.length);
  for (const { slug, arrays, documents } of rows) {
    const outer = viewKey({ slug, arrays: arrays.slice(0, -1) });
    const full =
      views.size >= REPORT_LIMITS.views ||
      (ofType.get(slug) ?? 0) >= shareOf(REPORT_LIMITS.viewsOfType, arrays.at(-1) ?? [], documents);
    if (full || views.has(viewKey({ slug, arrays })) || (arrays.length > 0 && !views.has(outer))) continue;
    add(slug, arrays, false);
    if (arrays.length === 0) add(slug, arrays, true);
  }
  return views;
}

/**
 * Returns a field as one of the elements of an array if its path leads into an element that came without its array: that is a row
 * of the array's view. Unless objects came first, and have columns.
 */
function ofElement(field: SeenField, views: ReadonlyMap<string, ReportView>): SeenField {
  const { slug, path } = field;
  const columns = views.get(viewKey(field))?.columns ?? [];
  for (let depth = 1; depth < path.length; depth += 1) {
    const arrays = [...field.arrays, path.slice(0, depth)];
    if (!views.has(viewKey({ slug, arrays })) || columns.some((column) => isWithin(column.path, path, depth))) continue;
    return ofElement({ ...field, arrays, path: path.slice(depth) }, views);
  }
  return field;
}

function isWithin(path: readonly string[], other: readonly string[], depth: number): boolean {
  return path.length > depth && pathKey(path.slice(0, depth)) === pathKey(other.slice(0, depth));
}

function addColumns(
  view: ReportView,
  seen: readonly SeenField[],
  views: ReadonlyMap<string, ReportView>,
  rules: NameRules,
): ReportView {
  const columns: ReportColumn[] = [...view.columns];
  const taken = new Set(columns.map(({ name }) => name));
  const types = new Map<string, ColumnType[]>();
  for (const { path, type } of columns) types.set(pathKey(path), [...(types.get(pathKey(path)) ?? []), type]);
  for (const [key, found] of groupBy(seen, ({ path }) => pathKey(path))) {
    const path = found[0]?.path ?? [];
    if (path.length === 0) continue;
    const limit = shareOf(REPORT_LIMITS.columns, path, Math.max(...found.map(({ documents }) => documents)));
    const isTable = views.has(viewKey({ slug: view.slug, arrays: [...view.arrays, path] }));
    for (const type of missingTypes(types.get(key) ?? [], found, isTable)) {
      if (columns.length >= limit) break;
      const before = types.get(key) ?? [];
      const name = columnName(path, before.length === 0 ? '' : `__${type}`, taken, rules);
      columns.push({ name, path, type });
      taken.add(name);
      types.set(key, [...before, type]);
    }
  }
  return { ...view, columns };
}

/** Returns the types for which the field still needs a column. Pure. */
function missingTypes(has: readonly ColumnType[], seen: readonly SeenField[], isTable: boolean): readonly ColumnType[] {
  const missing: ColumnType[] = [];
  const scalars = seen.filter(({ kind }) => isScalar(kind)).sort((a, b) => b.count - a.count);
  const primary = has.find(isScalar) ?? (scalars[0]?.kind as ColumnType | undefined);
  if (primary !== undefined && !has.includes(primary)) missing.push(primary);
  // As text it could be taken for a number in German notation.
  if (!has.includes('number') && primary !== 'number' && scalars.some(({ kind }) => kind === 'number'))
    missing.push('number');
  const fits = (kind: SeenKind) => kind === primary || primary === 'text';
  if (!has.includes('text') && scalars.some(({ kind }) => !fits(kind))) missing.push('text');
  const wantsJson = seen.some(({ kind }) => kind === 'json' || kind === 'array' || (kind === 'objects' && !isTable));
  if (wantsJson && !has.includes('json')) missing.push('json');
  return missing;
}
