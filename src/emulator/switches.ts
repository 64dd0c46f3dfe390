import { z } from 'zod';
import { faultSchema } from './faults.js';

const share = z.number().min(0).max(1);
const milliseconds = z.number().min(0);

/** Everything that can be changed while the emulator runs. */
export const switchesSchema = z.strictObject({
  latencyMs: milliseconds.describe('pause before every answer of the service'),
  failureShare: share.describe('share of new runs that fail'),
  truncatedShare: share.describe(
    'share of completed runs whose data or markdown is left out of the feed, whatever its size',
  ),
  testEnvironmentShare: share.describe('share of new generated runs in the environment test'),
  newRunsPerSecond: z.number().min(0).describe('new runs a second'),
  correctionsPerMinute: z.number().min(0).describe('corrections and retries a minute, mostly of recent runs'),
  processingMs: milliseconds.describe('time that the processing of a submission takes'),
  lateShare: share.describe('share of new generated runs that become visible late, behind cursors'),
  lateByMs: milliseconds.describe('how late they become visible'),
  redelivery: z
    .enum(['ahead', 'behind'])
    .describe('where a new revision appears: ahead of stored cursors or behind them'),
  superseded: z.enum(['removed', 'kept']).describe('what becomes of the entry of a superseded revision'),
  cursors: z
    .enum(['stable', 'moving'])
    .describe('whether nextCursor stays the same at the end of the feed or changes with every poll'),
  sinceBoundary: z
    .enum(['inclusive', 'exclusive'])
    .describe('whether since includes runs delivered at exactly that time'),
  inlineLimitBytes: z.int().min(0).describe('largest data JSON and largest markdown (each) that the feed carries'),
  maxFileBytes: z.int().min(1).describe('largest PDF that is accepted'),
  idempotencyKeyRequired: z.boolean().describe('submissions without an Idempotency-Key are rejected'),
  notReadySchemas: z
    .array(z.strictObject({ documentType: z.string(), environment: z.enum(['prod', 'test']) }))
    .describe('document types without a ready schema in an environment'),
  notReadyStatus: z.int().min(400).max(499).describe('status code of submissions to them'),
  statusUrlBase: z.string().nullable().describe('start of statusUrl and Location; null for the address of the request'),
  clockOffsetMs: z.number().describe("how far the service's clock is ahead of the machine's"),
  dateHeader: z.boolean().describe('whether answers carry a Date header'),
  scanLimit: z
    .int()
    .min(1)
    .describe('runs that one feed request looks at, at most; a page may then be short before the end'),
  faults: z.array(faultSchema).describe('faults in force'),
});

export type Switches = z.output<typeof switchesSchema>;
/** A change: what is missing stays, `faults` replaces the whole list. */
export type SwitchesPatch = { [K in keyof z.input<typeof switchesSchema>]?: z.input<typeof switchesSchema>[K] };

/** Without faults, and nothing happens by itself. */
export const defaultSwitches: Switches = {
  latencyMs: 0,
  failureShare: 0.03,
  truncatedShare: 0.01,
  testEnvironmentShare: 0.05,
  newRunsPerSecond: 0,
  correctionsPerMinute: 0,
  processingMs: 2000,
  lateShare: 0,
  lateByMs: 60_000,
  redelivery: 'ahead',
  superseded: 'removed',
  cursors: 'stable',
  sinceBoundary: 'inclusive',
  inlineLimitBytes: 256 * 1024,
  maxFileBytes: 20 * 1024 * 1024,
  idempotencyKeyRequired: false,
  notReadySchemas: [],
  notReadyStatus: 422,
  statusUrlBase: null,
  clockOffsetMs: 0,
  dateHeader: true,
  scanLimit: 100_000,
  faults: [],
};

/** Checks a change; throws a `ZodError` that names what is wrong. */
export function checkPatch(patch: unknown): Partial<Switches> {
  const checked = switchesSchema.partial().parse(patch);
  return Object.fromEntries(Object.entries(checked).filter(([, value]) => value !== undefined)) as Partial<Switches>;
}
