/** What the control routes take. Their description is made from the same schemas. */
import { z } from 'zod';

const time = z.union([z.string(), z.number()]);
/** A run as a script writes it (`RunSpec`). */
const runSpecSchema = z.strictObject({
  scanId: z.string().min(1).optional(),
  revision: z.int().min(1).optional(),
  status: z.enum(['completed', 'failed']).optional(),
  environment: z.enum(['prod', 'test']).optional(),
  documentType: z.string().nullable().optional(),
  fileName: z.string().optional(),
  partnerName: z.string().nullable().optional(),
  partnerTestMode: z.boolean().optional(),
  ocrConfidence: z.number().nullable().optional(),
  data: z.unknown().optional(),
  dataJson: z.string().optional(),
  markdown: z.string().nullable().optional(),
  failureReason: z.string().nullable().optional(),
  error: z.string().nullable().optional(),
  submittedAt: time.nullable().optional(),
  completedAt: time.nullable().optional(),
  deliveredAt: time.optional(),
  truncated: z.union([z.enum(['data', 'markdown', 'both']), z.literal(false)]).optional(),
});
const organization = z.string().optional();
const count = z.int().min(1).max(10_000).default(1);
export const runsSchema = z.union([
  z.strictObject({ organization, runs: z.array(runSpecSchema).min(1) }),
  runSpecSchema.extend({ organization, count }),
]);
export const correctionSchema = runSpecSchema.extend({
  organization,
  count,
  redelivery: z.enum(['ahead', 'behind', 'in-place']).optional(),
});

export const invalidateSchema = z.strictObject({ organization });
export const entriesQuerySchema = z.strictObject({ organization });
export const answerQuerySchema = z.strictObject({
  status: z.coerce.number().int().min(200).max(599).default(200),
  times: z.coerce.number().int().min(1).optional(),
});
