import { z } from 'zod';
import { runSpecSchema } from '../model/run-specs.js';

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
