import pg from 'pg';
import { quoted, type Tables } from '../schema/schema.js';
import { type FixedColumn, OTHER, ownColumns, UNFIT } from './fixed-columns.js';
import { type ColumnType, pathKey, type ReportColumn, type ReportView, viewKey } from './report-view.js';
import { storedOrChangedRows, storedTable, tableDefinition } from './stored-rows.js';

const READ_AS: Readonly<Record<ColumnType, readonly [sqlType: string, kinds: readonly string[]]>> = {
  number: ['numeric', ['string', 'number', 'boolean']],
  boolean: ['boolean', ['string', 'number', 'boolean']],
  date: ['date', ['string', 'number', 'boolean']],
  timestamp: ['timestamptz', ['string', 'number', 'boolean']],
  text: ['text', ['string', 'number', 'boolean']],
  json: ['jsonb', ['string', 'number', 'boolean', 'array']],
};

/** Returns the SQL type of a column. */
export function sqlTypeOf(type: ColumnType): string {
  return READ_AS[type][0];
}

export interface ViewDefinition {
  /** Returns the statements that build the view, which then reads stored rows only while `built_as` is this fingerprint. */
  statements(fingerprint: string): string;
  /** The names of the columns. */
  readonly columns: readonly string[];
  /** The query that reads the rows from documents; a condition on `run` may be added at its end. */
  readonly rows: string;
}

/**
 * Returns the statements that create a typed view or add columns to it. Pure. Reading a value never fails: the functions of the
 * columns return null for values of other types.
 * @param within the views of arrays nested directly in this one
 */
export function viewDefinition(tables: Tables, view: ReportView, within: readonly ReportView[]): ViewDefinition {
  const name = `${quoted(tables.reportingSchema)}.${quoted(view.name)}`;
  const columns = allColumns(tables, view, within);
  const rows = selectRows(tables, view, within);
  const comments = columns.map(
    (column) => `COMMENT ON COLUMN ${name}.${quoted(column.name)} IS ${pg.escapeLiteral(column.comment)};`,
  );
  const names = columns.map((column) => column.name);
  const fields = view.columns.map((column) => `${quoted(column.name)} ${sqlTypeOf(column.type)}`);
  const statements = (fingerprint: string) => [
    ...(view.storesRows ? tableDefinition(tables, view, rows, fields) : []),
    `CREATE OR REPLACE VIEW ${name} WITH (security_invoker = false) AS`,
    `${view.storesRows ? storedOrChangedRows(tables, view, { rows, columns: names, fingerprint }) : rows};`,
    ...(view.storesRows ? [] : [`DROP TABLE IF EXISTS ${storedTable(tables, view.id)};`]),
    `COMMENT ON VIEW ${name} IS ${pg.escapeLiteral(commentOf(view))};`,
    ...comments,
  ];
  return { statements: (fingerprint) => statements(fingerprint).join('\n'), columns: names, rows };
}

function selectRows(tables: Tables, view: ReportView, within: readonly ReportView[]): string {
  const list = allColumns(tables, view, within).map(({ expression, name }) => `  ${expression} AS ${quoted(name)}`);
  return `SELECT\n${list.join(',\n')}\n${source(tables, view)}`;
}

function allColumns(tables: Tables, view: ReportView, within: readonly ReportView[]): readonly FixedColumn[] {
  return [...ownColumns(view), ...restColumns(tables, view, within), ...fieldColumns(tables, view)];
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

function fieldColumns(tables: Tables, { arrays, columns }: ReportView): readonly FixedColumn[] {
  const root = rootOf(arrays.length);
  return columns.map(({ name, path, type }) => ({
    name,
    expression: readAs(tables, type, valueAt(root, path)),
    comment: `Field ${path.join(' → ')}${NOTES[name.split('__')[1] ?? ''] ?? ''}`,
  }));
}

function readAs(tables: Tables, type: ColumnType, value: string): string {
  return `${quoted(tables.schema)}.as_${type}(${value})`;
}

function restColumns(
  tables: Tables,
  { arrays, columns, history }: ReportView,
  within: readonly ReportView[],
): readonly FixedColumn[] {
  const root = rootOf(arrays.length);
  const schema = quoted(tables.schema);
  const checked = expectedTypes(columns);
  const texts = (values: readonly string[]) => `ARRAY[${values.map(pg.escapeLiteral).join(', ')}]`;
  const names = texts(checked.map(({ names: unfit }) => unfit.join(' ')));
  const types = texts(checked.map(({ type }) => type));
  const values = `ARRAY[${checked.map(({ path }) => valueAt(root, path)).join(', ')}]`;
  const unfit = checked.length === 0 ? 'NULL::text[]' : `${schema}.unfit_fields(${names}, ${types}, ${values})`;
  return [
    {
      name: UNFIT,
      expression: `${unfit} COLLATE "C"`,
      comment: 'Columns that are null although the document has a value of another type; null: none',
    },
    {
      name: OTHER,
      expression: `${schema}.other_fields(${root}, ${pg.escapeLiteral(JSON.stringify(knownFields(columns, within)))})`,
      comment: `Fields without a column: ${history ? 'arrays of objects, those ' : ''}beyond the limits, or newer than the view; null: none`,
    },
  ];
}

/** The type of a value, and the columns that are null if it has another one. */
interface Expected {
  readonly path: readonly string[];
  readonly type: ColumnType | 'object';
  readonly names: string[];
}

/**
 * Returns the expected type of each field, and of each object around fields: that of the first column. Later columns have the
 * values that do not fit. Pure.
 */
function expectedTypes(columns: readonly ReportColumn[]): readonly Expected[] {
  const expected = new Map<string, Expected>();
  for (const { name, path, type } of columns) {
    for (const depth of path.keys()) {
      const outer = path.slice(0, depth + 1);
      const isField = outer.length === path.length;
      const before = expected.get(pathKey(outer));
      if (before === undefined)
        expected.set(pathKey(outer), { path: outer, type: isField ? type : 'object', names: [name] });
      else if (!isField && before.type === 'object') before.names.push(name);
    }
  }
  return [...expected.values()].filter(({ type }) => type !== 'json');
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

/** Returns the views of arrays nested directly in each view, by key of the outer view. */
export function viewsWithin(views: readonly ReportView[]): ReadonlyMap<string, readonly ReportView[]> {
  const within = new Map<string, ReportView[]>();
  for (const view of views) {
    if (view.arrays.length === 0) continue;
    const outer = viewKey({ slug: view.slug, arrays: view.arrays.slice(0, -1) });
    within.set(outer, [...(within.get(outer) ?? []), view]);
  }
  return within;
}

function commentOf({ slug, arrays, history }: ReportView): string {
  const type = `the document type ${JSON.stringify(slug)}`;
  if (history)
    return `Superseded revisions of completed runs of ${type}, each as it was, with the fields of their documents`;
  if (arrays.length === 0) return `Completed runs of ${type}, with the fields of their documents`;
  const path = arrays.map((keys) => keys.join(' → ')).join(' → ');
  return `Elements of ${path} in the documents of completed runs of ${type}, one row each`;
}
