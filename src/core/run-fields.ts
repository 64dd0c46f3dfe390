/** Fields of a run (interface 2.1 and 2.2). Other fields of an entry are stored in `extra`. */
export const INTERFACE_FIELDS = [
  'scanId',
  'revision',
  'status',
  'environment',
  'documentType',
  'fileName',
  'partnerName',
  'partnerTestMode',
  'ocrConfidence',
  'data',
  'failureReason',
  'error',
  'submittedAt',
  'completedAt',
  'deliveredAt',
  'resultTruncated',
  'markdown',
  'rawOcrResult',
] as const;
/** Fields of the outermost object of all answers (interface 2). */
export const ANSWER_FIELDS: ReadonlySet<string> = new Set([...INTERFACE_FIELDS, 'items', 'nextCursor', 'statusUrl']);
export type InterfaceField = (typeof INTERFACE_FIELDS)[number];
/** Maximum revision that can be stored: that of PostgreSQL's `integer`. */
export const MAX_REVISION = 2 ** 31 - 1;
/** Fields of its `documentType`. */
export const DOCUMENT_TYPE_FIELDS = ['slug', 'name'] as const;

const RUN_FIELDS: ReadonlySet<string> = new Set(INTERFACE_FIELDS);
const TYPE_FIELDS: ReadonlySet<string> = new Set(DOCUMENT_TYPE_FIELDS);

/** Returns whether a run, or its document type, has a field that the interface does not know. */
export function hasUnknownFields(run: object, documentType: object): boolean {
  return hasOtherFields(run, RUN_FIELDS) || hasOtherFields(documentType, TYPE_FIELDS);
}

function hasOtherFields(object: object, known: ReadonlySet<string>): boolean {
  for (const name in object) if (!known.has(name)) return true;
  return false;
}
