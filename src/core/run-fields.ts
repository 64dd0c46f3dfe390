/** Maximum revision that can be stored: that of PostgreSQL's `integer`. */
export const MAX_REVISION = 2 ** 31 - 1;

/** An optional field of a run: how its value is checked and stored. */
export interface FieldRule {
  readonly field: string;
  /** Its column in `runs`. */
  readonly column: string;
  /**
   * A value of another type is stored as null, and kept in `extra`. `code`: a text that identifies something, so it is compared
   * byte by byte; `long text`: one that only PostgreSQL reads, since it can be of any length.
   */
  readonly type: 'code' | 'text' | 'long text' | 'number' | 'time' | 'object';
  /** Maximum length of the text of an indexed column, UTF-8 bytes (`INDEXED_BYTES`); default: unlimited. */
  readonly maxBytes?: number;
  /** The only state of a run that has the field (interface 2.1); default: both. */
  readonly state?: 'completed' | 'failed';
}

const FIELDS = [
  { field: 'data', column: 'data', type: 'object', state: 'completed' },
  { field: 'failureReason', column: 'failure_reason', type: 'code', maxBytes: 512, state: 'failed' },
  { field: 'error', column: 'error', type: 'long text', state: 'failed' },
  { field: 'partnerName', column: 'partner_name', type: 'text', maxBytes: 1024 },
  { field: 'ocrConfidence', column: 'ocr_confidence', type: 'number' },
  { field: 'submittedAt', column: 'submitted_at', type: 'time' },
  { field: 'completedAt', column: 'completed_at', type: 'time' },
  { field: 'deliveredAt', column: 'delivered_at', type: 'time' },
  { field: 'markdown', column: 'markdown', type: 'long text' },
] as const satisfies readonly FieldRule[];
export type OptionalField = FieldRule & (typeof FIELDS)[number];
/** The optional fields of a run, one column each: the checks, the statements and the library follow from this table. */
export const OPTIONAL_FIELDS: readonly OptionalField[] = FIELDS;

/** Fields of a run (interface 2.1 and 2.2). Other fields of an entry are stored in `extra`. */
export const INTERFACE_FIELDS = [
  'scanId',
  'revision',
  'status',
  'environment',
  'documentType',
  'fileName',
  'partnerTestMode',
  'resultTruncated',
  'rawOcrResult',
  ...OPTIONAL_FIELDS.map(({ field }) => field),
] as const;
export type InterfaceField = (typeof INTERFACE_FIELDS)[number];
/** Fields of the outermost object of all responses (interface 2). */
export const ANSWER_FIELDS: ReadonlySet<string> = new Set([...INTERFACE_FIELDS, 'items', 'nextCursor', 'statusUrl']);
export const RUN_FIELDS: ReadonlySet<string> = new Set(INTERFACE_FIELDS);
/** Fields of its `documentType`. */
export const TYPE_FIELDS: ReadonlySet<string> = new Set(['slug', 'name']);

/** Returns whether a run, or its document type, has a field that the interface does not know. */
export function hasUnknownFields(run: object, documentType: object): boolean {
  return hasOtherFields(run, RUN_FIELDS) || hasOtherFields(documentType, TYPE_FIELDS);
}

function hasOtherFields(object: object, known: ReadonlySet<string>): boolean {
  for (const name in object) if (!known.has(name)) return true;
  return false;
}
