import type { Lightening } from '../json/light.js';

/** What decides about an entry (interface 2.1). All else, such as `data` and `markdown`, may be of any length. */
const STEERING: Lightening['keep'] = new Set([
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
/** What stays of a large page, `{"items":[{…}]}`: of its entries what steers. */
export const OF_A_PAGE: Lightening = { depth: 3, keep: STEERING };
/** The same of a single run. */
export const OF_A_RUN: Lightening = { depth: 1, keep: STEERING };
