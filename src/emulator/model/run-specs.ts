/** Runs and corrections in scripts. Omitted fields are generated from the run's number. */
import { z } from 'zod';
import { documentTypes } from './catalogue.js';
import { draw } from './random.js';
import type { Correction, RunSpec } from './run-spec-types.js';
import { factsOf, makeVersion, type RunSource, type RunVersion } from './runs.js';

/** Scripts in the same process can pass a Date. */
const time: z.ZodType<Date | string | number> = z.union([z.string(), z.number()]);

/** Fields of a run that a script can set; the others are generated from the run's number. */
export const runSpecSchema = z.strictObject({
  scanId: z.string().min(1).optional(),
  revision: z.int().min(1).optional(),
  status: z.enum(['completed', 'failed']).optional(),
  environment: z.enum(['prod', 'test']).optional(),
  documentType: z.string().nullish(),
  fileName: z.string().optional(),
  partnerName: z.string().nullish(),
  partnerTestMode: z.boolean().optional(),
  ocrConfidence: z.number().nullish(),
  data: z.unknown().optional(),
  dataJson: z.string().optional(),
  markdown: z.string().nullish(),
  failureReason: z.string().nullish(),
  error: z.string().nullish(),
  submittedAt: time.nullish(),
  completedAt: time.nullish(),
  deliveredAt: time.optional(),
  truncated: z.union([z.enum(['data', 'markdown', 'both']), z.literal(false)]).optional(),
});
runSpecSchema satisfies z.ZodType<RunSpec>;

/** Creates a finished run of a script, by default completed and in `prod`. */
export function scriptRun(
  source: RunSource,
  number: number,
  spec: RunSpec,
  { deliveredAt, processingMs }: { deliveredAt: number; processingMs: number },
): RunVersion {
  const generated = factsOf(source, { failureShare: 0, testEnvironmentShare: 0 }, number);
  const { status = 'completed', environment = 'prod', revision = 1 } = spec;
  const facts = { status, environment, documentType: scriptedType(spec.documentType, generated.documentType) };
  const times = { submittedAt: deliveredAt - processingMs, completedAt: deliveredAt, deliveredAt };
  const made = makeVersion(source, { number, revision, facts, ...times });
  return applySpec({ ...made, scanId: spec.scanId ?? made.scanId }, spec);
}

/**
 * Returns the next revision of a run. A completed run is corrected; a failed one is retried, successfully in 70% of the cases.
 * Its name, partner, submission and completion stay the same; its result is generated again unless the change contains one.
 */
export function reviseRun(
  source: RunSource,
  number: number,
  old: RunVersion,
  change: Correction,
  deliveredAt: number,
): RunVersion {
  const revision = change.revision ?? old.revision + 1;
  const retrySucceeds = draw(source.seed, number, 60 + revision) < 0.7;
  const status = change.status ?? (old.status === 'failed' && retrySucceeds ? 'completed' : old.status);
  const facts = { status, environment: change.environment ?? old.environment, documentType: old.documentType };
  const { scanId, fileName, partnerName, partnerTestMode, withheld, submittedAt, completedAt } = old;
  const times = { submittedAt: submittedAt ?? deliveredAt, completedAt: completedAt ?? deliveredAt, deliveredAt };
  const made = makeVersion(source, { number, revision, facts, ...times });
  const kept = { ...made, scanId, fileName, partnerName, partnerTestMode, submittedAt, completedAt };
  return applySpec(kept, { truncated: withheld, ...change });
}

/** Returns a time in a script as milliseconds since 1970. */
export function toMs(time: Date | string | number): number {
  const ms = typeof time === 'number' ? time : new Date(time).getTime();
  if (!Number.isFinite(ms)) throw new RangeError(`not a time: ${String(time)}`);
  return Math.floor(ms);
}

function applySpec(base: RunVersion, spec: RunSpec): RunVersion {
  const failed = base.status === 'failed';
  const { fileName = base.fileName, partnerName = base.partnerName } = spec;
  const { submittedAt = base.submittedAt, completedAt = base.completedAt, markdown, ocrConfidence } = spec;
  const { failureReason = base.failureReason, error = base.error } = failed ? spec : base;
  const { dataJson = JSON.stringify(spec.data) as string | undefined } = spec;
  return {
    ...base,
    ...{ fileName, partnerName, failureReason, error },
    documentType: scriptedType(spec.documentType, base.documentType),
    // Without a recognized partner it is false (interface 2.1).
    partnerTestMode: spec.partnerTestMode ?? (spec.partnerName === null ? false : base.partnerTestMode),
    ocrConfidence: ocrConfidence === undefined ? base.ocrConfidence : (ocrConfidence?.toString() ?? null),
    submittedAt: submittedAt === null ? null : toMs(submittedAt),
    completedAt: completedAt === null ? null : toMs(completedAt),
    withheld: spec.truncated,
    data: dataJson === undefined || failed ? base.data : () => dataJson,
    markdown: markdown === undefined ? base.markdown : () => markdown,
  };
}

function scriptedType(slug: RunSpec['documentType'], generated: RunVersion['documentType']) {
  if (slug === undefined) return generated;
  return { slug, name: documentTypes.find((type) => type.slug === slug)?.name ?? null };
}
