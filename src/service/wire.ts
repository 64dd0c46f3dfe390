import { z } from 'zod';

/*
 * The objects that the service sends (interface 2). They are loose: fields that the interface does not know are kept. Numbers
 * are JavaScript numbers, so `data` may lose digits; `RecognitionClient.readPage` and `readRun` return the text with every
 * digit.
 */

/** A JSON object, returned as parsed: neither copied nor checked. */
const jsonObject = z.custom<Readonly<Record<string, unknown>>>(isJsonObject, 'expected an object');

/** ISO 8601; a zone may be missing. Kept as text. */
const dateTime = z.iso.datetime({ offset: true, local: true });

/** Interface 2.1: a finished run, as an entry of the feed. */
export const feedEntrySchema = z.looseObject({
  /** Identifies the run. */
  scanId: z.string().min(1),
  /** Starts at 1; raised by a retry or a correction. The highest revision of a scan counts. */
  revision: z.int().min(1),
  /** The feed lists finished runs only (interface 3). */
  status: z.enum(['completed', 'failed']),
  environment: z.enum(['prod', 'test']),
  /** The document type at the time of the run: slug and display name. */
  documentType: z.looseObject({ slug: z.string().nullable(), name: z.string().nullable() }),
  /** Original file name of the submitted PDF. */
  fileName: z.string(),
  /** The recognized sender, if any. */
  partnerName: z.string().nullish(),
  /** True: treat as a test run, to be filed only for checking. */
  partnerTestMode: z.boolean().optional(),
  /** Overall recognition confidence; the interface gives no unit. */
  ocrConfidence: z.number().nullish(),
  /** The result, in the schema of the document type. Only if `status` is `completed`. */
  data: jsonObject.nullish(),
  /** Machine-readable reason. Only if `status` is `failed`. */
  failureReason: z.string().nullish(),
  /** German message for people. Only if `status` is `failed`. */
  error: z.string().nullish(),
  submittedAt: dateTime.nullish(),
  completedAt: dateTime.nullish(),
  deliveredAt: dateTime.nullish(),
  /** True: `data` or `markdown` was too large for the feed and is absent; `RecognitionClient.getRun` loads it. */
  resultTruncated: z.boolean().optional(),
  /** Only if requested. */
  markdown: z.string().nullish(),
});
export type FeedEntry = z.infer<typeof feedEntrySchema>;

/** Interface 2.2: one run in full; its status may still be `processing`. */
export const runSchema = feedEntrySchema.extend({
  status: z.enum(['processing', 'completed', 'failed']),
  /** Raw OCR result; the interface does not define its shape. */
  rawOcrResult: z.unknown().optional(),
});
export type Run = z.infer<typeof runSchema>;

/** Interface 2.3: a page of the feed. */
export const feedPageSchema = z.looseObject({
  items: z.array(feedEntrySchema),
  /** Opaque. Store it once the entries are processed, and send it as `cursor` with the next poll. */
  nextCursor: z.string().min(1),
});
export type FeedPage = z.infer<typeof feedPageSchema>;

/** Interface 2.4: the response to a submission. */
export const submissionSchema = z.looseObject({
  scanId: z.string().min(1),
  /** `processing` for a new run; the current status for an idempotent repeat. */
  status: z.enum(['processing', 'completed', 'failed']),
  /** For people. The client builds its own URLs and never follows this one. */
  statusUrl: z.string(),
});
export type Submission = z.infer<typeof submissionSchema>;

/** Interface 2.5: the body of an error, German. */
export const errorBodySchema = z.looseObject({ error: z.string() });

/** Returns whether a value is a JSON object: neither null nor an array. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the fields that do not match the schema, without their values. On a page these are the fields of the first such
 * entry.
 * @returns `in`: the index of that entry; null if the mismatch is not in an entry
 */
export function misfit(error: z.ZodError): { readonly in: number | null; readonly fields: readonly string[] } {
  const entry = entryOf(error.issues[0]?.path);
  const here = error.issues.map(({ path }) => path).filter((path) => entryOf(path) === entry);
  const fields = here.map((path) => path.slice(entry === null ? 0 : 2).join('.') || 'not an object');
  return { in: entry, fields: [...new Set(fields)] };
}

function entryOf(path: readonly PropertyKey[] = []): number | null {
  return path[0] === 'items' && typeof path[1] === 'number' ? path[1] : null;
}
