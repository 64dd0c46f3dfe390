/** Fields of a run (interface 2.1 and 2.2). What else an entry holds is kept beside them, in `extra`. */
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
/** Fields of `documentType` in it. */
export const DOCUMENT_TYPE_FIELDS = ['slug', 'name'] as const;

const SKIPPABLE_IN_RUN: ReadonlySet<string> = new Set(INTERFACE_FIELDS);
const OF_A_DOCUMENT_TYPE: ReadonlySet<string> = new Set(DOCUMENT_TYPE_FIELDS);

/** Whether a run, or its document type, has a field that the interface does not know. */
export function hasUnknownFields(run: object, documentType: object): boolean {
  return hasOther(run, SKIPPABLE_IN_RUN) || hasOther(documentType, OF_A_DOCUMENT_TYPE);
}

function hasOther(object: object, known: ReadonlySet<string>): boolean {
  for (const name in object) if (!known.has(name)) return true;
  return false;
}
