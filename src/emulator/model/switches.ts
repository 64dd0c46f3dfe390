import { z } from 'zod';
import { faultSchema } from './faults.js';
import type { Switches, SwitchesPatch } from './switch-types.js';

const share = z.number().min(0).max(1);
const quantity = z.number().min(0);
const wholeNumber = z.int().min(0);
const positive = z.int().min(1);
/** Returns the schema of one of these words; the first one is the default. */
const oneOf = <const T extends readonly [string, ...string[]]>(...words: T) => z.enum(words).default(words[0] as T[0]);

/** Settings that can be changed while the emulator runs. By default there are no faults, new runs or corrections. */
export const switchesSchema = z.strictObject({
  latencyMs: quantity.default(0).describe('pause before every response of the service'),
  failureShare: share.default(0.03).describe('share of new runs that fail'),
  truncatedShare: share
    .default(0.01)
    .describe('share of completed runs whose data or markdown the feed omits, regardless of its size'),
  testEnvironmentShare: share.default(0.05).describe('share of new generated runs in the environment test'),
  newRunsPerSecond: quantity.default(0).describe('new runs per second'),
  correctionsPerMinute: quantity.default(0).describe('corrections and retries per minute, preferably of recent runs'),
  processingMs: quantity.default(2000).describe('processing time of a submission'),
  lateShare: share.default(0).describe('share of new generated runs that become visible late, behind cursors'),
  lateByMs: quantity.default(60_000).describe('delay with which they become visible'),
  redelivery: oneOf('ahead', 'behind', 'in-place').describe(
    'where a new revision appears: ahead of stored cursors, behind them, or at its old place with a new delivery time',
  ),
  superseded: oneOf('removed', 'kept').describe('whether the entry of a superseded revision is removed or kept'),
  cursors: oneOf('stable', 'moving').describe(
    'whether nextCursor stays the same at the end of the feed or changes with every poll',
  ),
  cursorFilters: oneOf('free', 'bound').describe(
    'whether a cursor is rejected with other filters than those it was issued with',
  ),
  cursorLength: wholeNumber.default(0).describe('minimum length of a cursor, in characters'),
  cursorRefusal: oneOf('400', '404', '410', '414', '422', '431', 'reset').describe(
    'status of the response to a rejected cursor, or reset: the connection is destroyed',
  ),
  endCursor: oneOf('sent', 'null', 'absent').describe('nextCursor of a page that reaches the end of the feed'),
  sinceMeaning: oneOf('delivered', 'completed', 'submitted').describe('the time of a run that since is compared with'),
  sinceBoundary: oneOf('inclusive', 'exclusive').describe('whether since includes runs delivered at exactly that time'),
  runFields: oneOf('all', 'required').describe(
    'fields of single-run responses: all, or the required ones and the result',
  ),
  runFlag: oneOf('cleared', 'kept').describe(
    'resultTruncated of single-run responses: false, or that of the feed entry although the response is complete',
  ),
  testModeField: oneOf('always', 'when-true', 'first-revision').describe(
    'whether partnerTestMode is always sent, only when true, or only in the first revision of a run',
  ),
  inlineLimitBytes: wholeNumber
    .default(256 * 1024)
    .describe('maximum size of the data JSON and of the markdown in the feed'),
  maxFileBytes: positive.default(20 * 1024 * 1024).describe('maximum size of a PDF'),
  idempotencyKeyRequired: z.boolean().default(false).describe('submissions without an Idempotency-Key are rejected'),
  notReadySchemas: z
    .array(z.strictObject({ documentType: z.string(), environment: z.enum(['prod', 'test']) }))
    .default([])
    .describe('document types without a ready schema in an environment'),
  notReadyStatus: z.int().min(400).max(499).default(422).describe('status code of submissions to them'),
  submissionFields: oneOf('all', 'scan-id').describe('fields of the response to a submission: all, or scanId alone'),
  statusUrlBase: z
    .string()
    .nullable()
    .default(null)
    .describe('start of statusUrl and Location; null for the address of the request'),
  clockOffsetMs: z.number().default(0).describe("time by which the service's clock is ahead of the machine's"),
  dateHeader: z.boolean().default(true).describe('whether responses have a Date header'),
  cacheControl: z.string().nullable().default(null).describe('Cache-Control header of all responses; null for none'),
  scanLimit: positive
    .default(100_000)
    .describe('maximum number of runs that a feed request examines; a page can then be short before the end'),
  faults: z.array(faultSchema).default([]).describe('active faults'),
});

switchesSchema satisfies z.ZodType<Switches, SwitchesPatch>;
