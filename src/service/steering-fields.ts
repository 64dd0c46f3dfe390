import type { Lightening } from '../json/light.js';

/** What decides about an entry (interface 2.1). All else, such as `data` and `markdown`, may be of any length. */
const STEERING: ReadonlySet<string> = new Set([
  'scanId',
  'revision',
  'status',
  'environment',
  'documentType',
  'partnerName',
  'partnerTestMode',
  'ocrConfidence',
  'failureReason',
  'submittedAt',
  'completedAt',
  'deliveredAt',
  'resultTruncated',
]);
/** Longest `nextCursor` that is read, bytes of JSON. A longer one could not be sent back, however it is escaped. */
const CURSOR_BYTES = 64 * 1024;

/** Reads of a large page, `{"items":[{…}],"nextCursor":"…"}`, what steers. */
export const OF_A_PAGE: Lightening = {
  depth: 3,
  entries: 'items',
  isEmptiable: ({ depth, name, bytes }) =>
    depth === 1 ? name === 'nextCursor' && bytes > CURSOR_BYTES : depth === 3 && !STEERING.has(name),
};
/** The same of a single run. */
export const OF_A_RUN: Lightening = { depth: 1, isEmptiable: ({ name }) => !STEERING.has(name) };
