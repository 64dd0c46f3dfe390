/** How the value of a column is read from the JSON. */
export type ColumnType = 'number' | 'boolean' | 'date' | 'timestamp' | 'text' | 'json';

/** A column for a field of the documents. */
export interface ReportColumn {
  readonly name: string;
  /** Keys that lead to the field, from the document or from the element of the array. */
  readonly path: readonly string[];
  readonly type: ColumnType;
}

/** A typed view: of the documents of a type, or of the elements of an array within them. */
export interface ReportView {
  /** Null: decided, not stored yet. */
  readonly id: number | null;
  readonly name: string;
  /** Slug of the document type. */
  readonly slug: string;
  /** Paths of the arrays whose elements are its rows, outermost first, each from within the one before; none: documents. */
  readonly arrays: readonly (readonly string[])[];
  /** In their order, which never changes. */
  readonly columns: readonly ReportColumn[];
}

/** Identifies a view by what it shows. */
export function viewKey({ slug, arrays }: Pick<ReportView, 'slug' | 'arrays'>): string {
  return JSON.stringify([slug, ...arrays]);
}

/** Identifies a field within a view. */
export function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** Bounds of what becomes a view or a column. What exceeds them is in `other_fields`, or in a column of JSON. */
export const REPORT_LIMITS = {
  /** Columns for fields, a view. PostgreSQL allows some 1,600. */
  columns: 500,
  /** Views of one document type, and of all. */
  viewsOfType: 50,
  views: 2_000,
  /** Objects within one another that become columns; what is deeper is a column of JSON. */
  depth: 8,
  /** Arrays within one another whose elements become rows. */
  arrays: 3,
  /** Bytes of a key. A longer one is a value by mistake. */
  keyBytes: 200,
} as const;
