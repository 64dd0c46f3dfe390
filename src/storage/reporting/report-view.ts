/** The type as which the value of a column is read from the JSON. */
export type ColumnType = 'number' | 'boolean' | 'date' | 'timestamp' | 'text' | 'json';

/** A column for a field of the documents. */
export interface ReportColumn {
  readonly name: string;
  /** Keys that lead to the field, from the document or from the element of the array. */
  readonly path: readonly string[];
  readonly type: ColumnType;
}

/** A typed view: its rows are the documents of a type, or the elements of an array in them. */
export interface ReportView {
  /** Null: not stored yet. */
  readonly id: number | null;
  readonly name: string;
  /** Slug of the document type. */
  readonly slug: string;
  /**
   * Paths of the nested arrays whose elements are its rows, outermost first, each relative to the previous one; empty: documents.
   */
  readonly arrays: readonly (readonly string[])[];
  /** Whether its rows are superseded revisions of documents, with the field columns of the view of current ones. */
  readonly history: boolean;
  /** Whether its rows are kept in a table. */
  readonly storesRows: boolean;
  /** The columns in their order, which never changes. */
  readonly columns: readonly ReportColumn[];
}

/** A typed view with the state of its relations. */
export interface StoredView extends ReportView {
  readonly id: number;
  /** Fingerprint of the last definition that was built; null: none was. */
  readonly builtAs: string | null;
  readonly builtAt: Date | null;
  /** False: not built yet, or dropped since. */
  readonly exists: boolean;
  /** Whether there is a table with its rows. */
  readonly hasTable: boolean;
}

/** Returns a key that identifies a view by its rows. */
export function viewKey({
  slug,
  arrays,
  history = false,
}: Pick<ReportView, 'slug' | 'arrays'> & { readonly history?: boolean }): string {
  return JSON.stringify([slug, ...arrays, ...(history ? ['history'] : [])]);
}

/** Returns a key that identifies a field within a view. */
export function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** Limits of typed views. Fields beyond them are in `other_fields` or in a JSON column. */
export const REPORT_LIMITS = {
  /** Maximum number of field columns per view. PostgreSQL allows about 1,600 columns. */
  columns: 500,
  /** Maximum number of views per document type, and in total. */
  viewsOfType: 50,
  views: 2_000,
  /** Maximum number of keys of one object that differ only in digits. More are values, such as days, and get no columns. */
  keysWithDigits: 30,
  /** Maximum depth of nested objects that become columns; deeper ones are a JSON column. */
  depth: 8,
  /** Maximum depth of nested arrays whose elements become rows. */
  arrays: 3,
  /** Maximum length of a key, bytes. A longer one is a value by mistake. */
  keyBytes: 200,
} as const;

/** Number of documents in a search that make a field or array common. */
export const COMMON = 5;
/** Shares of the limits that rare fields and arrays can fill, so that they leave room for common ones, and nested ones for others. */
const RARE = { topLevel: 0.8, nested: 0.6 } as const;

/** Returns how much of a limit a field or array can fill. */
export function shareOf(limit: number, path: readonly string[], documents: number): number {
  if (documents >= COMMON) return limit;
  return limit * (path.length === 1 ? RARE.topLevel : RARE.nested);
}

/** Returns how much of a limit any field or array can fill. */
export function leastShareOf(limit: number): number {
  return limit * RARE.nested;
}

/** Returns what has reached a limit: all types together, views, and document types in quotes. */
export function findFull(views: readonly ReportView[]): readonly string[] {
  const { columns, viewsOfType, views: inTotal } = REPORT_LIMITS;
  const total = views.length < inTotal ? [] : [`all types (${inTotal} views together, so new types have none)`];
  const slugs = views.map(({ slug }) => JSON.stringify(slug));
  const types = [...new Set(slugs)].filter((type) => slugs.filter((slug) => slug === type).length >= viewsOfType);
  const full = views.filter((view) => !view.history && view.columns.length >= columns);
  return [...total, ...full.map(({ name }) => name), ...types];
}
