import { z } from 'zod';
import { faultSchema } from './faults.js';

const share = z.number().min(0).max(1);
const milliseconds = z.number().min(0);

/** Everything that can be changed while the emulator runs; {@link switchHelp} says what each does. */
export const switchesSchema = z.strictObject({
  latencyMs: milliseconds,
  failureShare: share,
  truncatedShare: share,
  testEnvironmentShare: share,
  newRunsPerSecond: z.number().min(0),
  correctionsPerMinute: z.number().min(0),
  processingMs: milliseconds,
  lateShare: share,
  lateByMs: milliseconds,
  redelivery: z.enum(['ahead', 'behind', 'in-place']),
  superseded: z.enum(['removed', 'kept']),
  cursors: z.enum(['stable', 'moving']),
  cursorFilters: z.enum(['free', 'bound']),
  cursorLength: z.int().min(0),
  cursorRefusal: z.enum(['400', '404', '410', '414', '422', '431', 'reset']),
  endCursor: z.enum(['sent', 'null', 'absent']),
  sinceMeaning: z.enum(['delivered', 'completed', 'submitted']),
  sinceBoundary: z.enum(['inclusive', 'exclusive']),
  runFields: z.enum(['all', 'required']),
  inlineLimitBytes: z.int().min(0),
  maxFileBytes: z.int().min(1),
  idempotencyKeyRequired: z.boolean(),
  notReadySchemas: z.array(z.strictObject({ documentType: z.string(), environment: z.enum(['prod', 'test']) })),
  notReadyStatus: z.int().min(400).max(499),
  statusUrlBase: z.string().nullable(),
  clockOffsetMs: z.number(),
  dateHeader: z.boolean(),
  scanLimit: z.int().min(1),
  faults: z.array(faultSchema),
});

export type Switches = z.output<typeof switchesSchema>;
/** A change: what is missing stays, `faults` replaces the whole list. */
export type SwitchesPatch = { [K in keyof z.input<typeof switchesSchema>]?: z.input<typeof switchesSchema>[K] };

/** Checks a change; throws a `ZodError` that names what is wrong. */
export function checkPatch(patch: unknown): Partial<Switches> {
  const checked = switchesSchema.partial().parse(patch);
  return Object.fromEntries(Object.entries(checked).filter(([, value]) => value !== undefined)) as Partial<Switches>;
}
