import { createHash } from 'node:crypto';
import pg from 'pg';
import { quoted, type Tables } from '../tables/schema.js';
import { type FixedColumn, OTHER, ownColumns, UNFIT } from './fixed-columns.js';
import {
  type ColumnType,
  pathKey,
  type ReportColumn,
  type ReportView,
  type StoredView,
  viewKey,
} from './report-view.js';
import { type DefinedView, storedOrChangedRows, storedTable, tableDefinition } from './stored-rows.js';
import { type Shape, shapeKey } from './value-shapes.js';

const READ_AS: Readonly<Record<ColumnType, readonly [sqlType: string, kinds: readonly string[]]>> = {
  number: ['numeric', ['string', 'number', 'boolean']],
  boolean: ['boolean', ['string', 'number', 'boolean']],
  date: ['date', ['string', 'number', 'boolean']],
  timestamp: ['timestamptz', ['string', 'number', 'boolean']],
  text: ['text', ['string', 'number', 'boolean']],
  json: ['jsonb', ['string', 'number', 'boolean', 'array', 'object']],
};

/** Returns the SQL type of a column. */
export function sqlTypeOf(type: ColumnType): string {
  return READ_AS[type][0];
}

/**
 * Returns the statements that create a typed view or add columns to it. Pure. Reading a value never fails: the functions of the
 * columns return null for values of other types.
 * @param views those of its document type
 * @param rareShapes those of its document type
 */
export function viewDefinition(
  tables: Tables,
  view: StoredView,
  views: readonly ReportView[],
  rareShapes: ReadonlySet<string>,
): DefinedView {
  const name = `${quoted(tables.reportingSchema)}.${quoted(view.name)}`;
  // Elements of arrays count like objects in place of the array.
  const isRare: IsRare = (path, shape, arrays = view.arrays) =>
    rareShapes.size > 0 && rareShapes.has(shapeKey(pathKey([...arrays.flat(), ...path]), shape));
  const columns = [
    ...ownColumns(view),
    ...restColumns(tables, view, viewsWithin(view, views), isRare),
    ...fieldColumns(tables, view, isRare),
  ];
  const list = columns.map((column) => `  ${column.expression} AS ${quoted(column.name)}`);
  const rows = `SELECT\n${list.join(',\n')}\n${source(tables, view)}`;
  const comments = columns.map(
    (column) => `COMMENT ON COLUMN ${name}.${quoted(column.name)} IS ${pg.escapeLiteral(column.comment)};`,
  );
  const names = columns.map((column) => column.name);
  const fields = view.columns.map((column) => `${quoted(column.name)} ${sqlTypeOf(column.type)}`);
  // The view reads stored rows only while `built_as` is this fingerprint.
  const statementsWith = (fingerprint: string) =>
    [
      ...(view.storesRows ? tableDefinition(tables, view, rows, fields) : []),
      `CREATE OR REPLACE VIEW ${name} WITH (security_invoker = false) AS`,
      `${view.storesRows ? storedOrChangedRows(tables, view, { rows, columns: names, fingerprint }) : rows};`,
      ...(view.storesRows ? [] : [`DROP TABLE IF EXISTS ${storedTable(tables, view.id)};`]),
      `COMMENT ON VIEW ${name} IS ${pg.escapeLiteral(commentOf(view, views))};`,
      ...comments,
    ].join('\n');
  const fingerprint = createHash('sha256').update(statementsWith('')).digest('hex');
  return { view, columns: names, rows, fingerprint, statements: statementsWith(fingerprint) };
}

function source(tables: Tables, { slug, arrays, history }: ReportView): string {
  const schema = quoted(tables.schema);
  const items = arrays.map((path, index) => {
    const array = valueAt(rootOf(index), path);
    // A single element may come without its array.
    const single = `jsonb_build_array(NULLIF(${array}, '{}'))`;
    const list = `CASE jsonb_typeof(${array}) WHEN 'array' THEN ${array} WHEN 'object' THEN ${single} END`;
    return `CROSS JOIN LATERAL jsonb_array_elements(${list}) WITH ORDINALITY AS item_${index + 1} (value, position)`;
  });
  // An element that is not an object is a row without fields: it is in `other_fields`.
  const elements = arrays.map((_, index) => `  AND item_${index + 1}.value NOT IN ('null', '""', '[]')`);
  return [
    `FROM ${schema}.${history ? 'run_history' : 'judged_runs'} AS run`,
    // Decompresses a document once per row instead of once per column: hundreds of times faster for large ones.
    'CROSS JOIN LATERAL unnest(ARRAY[run.data]) AS document (data)',
    ...items,
    `WHERE run.document_type_slug = ${pg.escapeLiteral(slug)} AND run.status = 'completed'`,
    ...elements,
  ].join('\n');
}

/** Returns the value that contains the fields: the document, or the innermost element. */
function rootOf(arrays: number): string {
  return arrays === 0 ? 'document.data' : `item_${arrays}.value`;
}

/** Reads a value key by key: a path operator would take numeric keys for array positions. */
function valueAt(root: string, path: readonly string[]): string {
  return [root, ...path.map(pg.escapeLiteral)].join('->');
}

/** What the second column of a field has, by the end of its name. */
const NOTES: Readonly<Record<string, string>> = { text: ', every value as text', number: ', if it is a number' };
const EXCEPTION = '; few values have this shape, so unfit_fields does not report values of another shape';
const EXCEPTIONAL_ROWS =
  '; few values give rows of this view, so unfit_fields does not report the values that give none';

/** Whether few values of a field of a view have the shape. */
type IsRare = (path: readonly string[], shape: Shape, arrays?: ReportView['arrays']) => boolean;

function fieldColumns(tables: Tables, view: ReportView, isRareAt: IsRare): readonly FixedColumn[] {
  const root = rootOf(view.arrays.length);
  const areRowsRare = view.arrays.some((array, index) =>
    shapesOf(array, 'array').some(({ shape, path }) => isRareAt(path, shape, view.arrays.slice(0, index))),
  );
  return view.columns.map(({ name, path, type }) => {
    const note = NOTES[name.split('__')[1] ?? ''] ?? '';
    const isRare = shapesOf(path, type).some(({ shape, path: at }) => isRareAt(at, shape));
    return {
      name,
      expression: readAs(tables, type, valueAt(root, path)),
      comment: `Field ${path.join(' → ')}${note}${isRare ? EXCEPTION : ''}${areRowsRare ? EXCEPTIONAL_ROWS : ''}`,
    };
  });
}

function readAs(tables: Tables, type: ColumnType, value: string): string {
  return `${quoted(tables.schema)}.as_${type}(${value})`;
}

function restColumns(
  tables: Tables,
  view: ReportView,
  within: readonly ReportView[],
  isRareAt: IsRare,
): readonly FixedColumn[] {
  const root = rootOf(view.arrays.length);
  const schema = quoted(tables.schema);
  const checked = expectedTypes(view, within, isRareAt);
  const texts = (values: readonly string[]) => `ARRAY[${values.map(pg.escapeLiteral).join(', ')}]`;
  const names = texts(checked.map(({ names: unfit }) => unfit.join(' ')));
  const types = texts(checked.map(({ type }) => type));
  const checkedValue = ({ path, isRare }: Expected) => {
    const value = valueAt(root, path);
    return isRare ? `CASE WHEN jsonb_typeof(${value}) NOT IN ('object', 'array') THEN ${value} END` : value;
  };
  const values = `ARRAY[${checked.map(checkedValue).join(', ')}]`;
  const unfit = checked.length === 0 ? 'NULL::text[]' : `${schema}.unfit_fields(${names}, ${types}, ${values})`;
  return [
    {
      name: UNFIT,
      expression: `${unfit} COLLATE "C"`,
      comment:
        'Columns that are null, and views without rows, although the document has a value of another type or shape; null: none',
    },
    {
      name: OTHER,
      expression: `${schema}.other_fields(${root}, ${pg.escapeLiteral(JSON.stringify(knownFields(view.columns, within)))})`,
      comment: `Fields without a column: ${view.history ? 'arrays of objects, and fields ' : ''}beyond the limits or newer than the view; null: none`,
    },
  ];
}

/** The type of a value, and the columns and views that lack a value of another type. */
interface Expected {
  readonly path: readonly string[];
  readonly type: string;
  readonly names: string[];
  /** Whether few values have this shape, so that those of another shape are not unfit. */
  readonly isRare: boolean;
}

/**
 * Returns the expected type of each field, which is that of its first column: later ones have the scalars that do not fit. Also
 * returns the objects around fields, and the arrays that have a view. Columns of another shape do not matter, so the order does not
 * matter in which the shapes arrive. Pure.
 */
function expectedTypes({ columns }: ReportView, within: readonly ReportView[], isRareAt: IsRare): readonly Expected[] {
  const expected = new Map<string, Expected>();
  const arrays = within.map((inner) => ({ name: inner.name, path: inner.arrays.at(-1) ?? [], type: 'array' }));
  for (const field of [...columns, ...arrays]) {
    for (const { path, type, shape } of shapesOf(field.path, field.type)) {
      const isRare = isRareAt(path, shape);
      const key = pathKey([shape, ...path]);
      const before = expected.get(key);
      if (before === undefined) expected.set(key, { path, type, names: [field.name], isRare });
      else if (shape === 'object') before.names.push(field.name);
    }
  }
  return [...expected.values()].filter(({ type, isRare }) => !isRare || (type !== 'object' && type !== 'array'));
}

/** Returns the types of the objects around a field, and its own unless its column has values of any shape. */
function shapesOf(
  path: readonly string[],
  type: string,
): readonly Omit<Expected & { shape: Shape }, 'names' | 'isRare'>[] {
  const object = { type: 'object', shape: 'object' } as const;
  const around = path.slice(1).map((_, depth) => ({ path: path.slice(0, depth + 1), ...object }));
  return type === 'json' ? around : [...around, { path, type, shape: type === 'array' ? 'array' : 'scalar' }];
}

interface KnownField {
  kinds?: string[];
  fields?: Record<string, KnownField>;
}

/** Returns, by key, the types of values that have a column or a view, and the known fields of objects. Pure. */
function knownFields(columns: readonly ReportColumn[], within: readonly ReportView[]): Record<string, KnownField> {
  const known: Record<string, KnownField> = Object.create(null);
  const add = (path: readonly string[], kinds: readonly string[]) => {
    let fields = known;
    for (const [index, key] of path.entries()) {
      fields[key] ??= {};
      const field = fields[key];
      if (index === path.length - 1) field.kinds = [...new Set([...(field.kinds ?? []), ...kinds])];
      else {
        field.fields ??= Object.create(null) as Record<string, KnownField>;
        fields = field.fields;
      }
    }
  };
  for (const { path, type } of columns) add(path, READ_AS[type][1]);
  for (const { arrays } of within) add(arrays.at(-1) ?? [], ['array', 'object']);
  return known;
}

/** Returns the views of arrays nested directly in a view. */
function viewsWithin(outer: ReportView, views: readonly ReportView[]): readonly ReportView[] {
  const inner = views.filter(({ slug, arrays }) => slug === outer.slug && arrays.length === outer.arrays.length + 1);
  return inner.filter(({ slug, arrays }) => viewKey({ slug, arrays: arrays.slice(0, -1) }) === viewKey(outer));
}

function commentOf({ slug, arrays, history }: ReportView, views: readonly ReportView[]): string {
  const type = `the document type ${JSON.stringify(slug)}`;
  if (history)
    return `Superseded revisions of completed runs of ${type}, each as it was, with the fields of their documents`;
  if (arrays.length === 0) return `Completed runs of ${type}, with the fields of their documents`;
  // It takes an object around the array for an element of an array.
  const wider = views.find(
    (view) =>
      view.slug === slug &&
      view.arrays.length > arrays.length &&
      pathKey(view.arrays.flat()) === pathKey(arrays.flat()),
  );
  const others = wider === undefined ? '' : `; ${wider.name} has these and further ones`;
  return `Elements of ${arrays.flat().join(' → ')} in the documents of completed runs of ${type}, one row each${others}`;
}
