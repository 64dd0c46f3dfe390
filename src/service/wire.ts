import { z } from 'zod';

/*
 * What the service sends, as interface 2 describes it. Objects are loose: fields the interface does not know are kept.
 * Values have passed through JavaScript numbers, so long digits in `data` are rounded; where every digit counts, read
 * the text (`RecognitionClient.readPage`, `readRun`).
 */

/** A JSON object, passed through as parsed: neither copied nor looked into. */
const jsonObject = z.custom<Readonly<Record<string, unknown>>>(isJsonObject, 'expected an object');

/** ISO 8601; a zone may be missing. Kept as text. */
const dateTime = z.iso.datetime({ offset: true, local: true });

/** Interface 2.1: a finished run, as an entry of the feed. */
export const feedEntrySchema = z.looseObject({
  /** Identifier of the run. */
  scanId: z.string().min(1),
  /** Starts at 1; a retry or a correction raises it. The highest revision of a scan wins. */
  revision: z.int().min(1),
  /** The feed lists finished runs only (interface 3). */
  status: z.enum(['completed', 'failed']),
  environment: z.enum(['prod', 'test']),
  /** The document type at the time of the run: slug and display name. */
  documentType: z.looseObject({ slug: z.string().nullable(), name: z.string().nullable() }),
  /** Original file name of the submitted PDF. */
  fileName: z.string(),
  /** The sender that was recognized, if any. */
  partnerName: z.string().nullish(),
  /** True: treat as a test run, file it for checking only. */
  partnerTestMode: z.boolean().optional(),
  /** Overall recognition confidence; the interface gives no unit. */
  ocrConfidence: z.number().nullish(),
  /** The result, by the schema of the document type. Only where `status` is `completed`. */
  data: jsonObject.nullish(),
  /** Machine-readable reason. Only where `status` is `failed`. */
  failureReason: z.string().nullish(),
  /** German message for a person. Only where `status` is `failed`. */
  error: z.string().nullish(),
  submittedAt: dateTime.nullish(),
  completedAt: dateTime.nullish(),
  deliveredAt: dateTime.nullish(),
  /** True: `data` or `markdown` was too large for the feed and is absent; `RecognitionClient.getRun` loads it. */
  resultTruncated: z.boolean().optional(),
  /** Only where it was asked for. */
  markdown: z.string().nullish(),
});
export type FeedEntry = z.infer<typeof feedEntrySchema>;

/** Interface 2.2: one run in full; its status may still be `processing`. */
export const runSchema = feedEntrySchema.extend({
  status: z.enum(['processing', 'completed', 'failed']),
  /** Raw OCR result; the interface does not show its shape. */
  rawOcrResult: z.unknown().optional(),
});
export type Run = z.infer<typeof runSchema>;

/** Interface 2.3: a page of the feed. */
export const feedPageSchema = z.looseObject({
  items: z.array(feedEntrySchema),
  /** Opaque; to be stored once the entries are processed, and sent as `cursor` with the next poll. */
  nextCursor: z.string().min(1),
});
export type FeedPage = z.infer<typeof feedPageSchema>;

/** Interface 2.4: the answer to a submission. */
export const submissionSchema = z.looseObject({
  scanId: z.string().min(1),
  /** `processing` for a new run; for an idempotent repeat the status the run has now. */
  status: z.enum(['processing', 'completed', 'failed']),
  /** For a person. The client builds its own addresses and never follows this one. */
  statusUrl: z.string(),
});
export type Submission = z.infer<typeof submissionSchema>;

/** Interface 2.5: the body of an error, German. */
export const errorBodySchema = z.looseObject({ error: z.string() });

/** An object in the sense of JSON: neither null nor an array. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Where a value first misses its schema, and at which fields; never their values.
 * @returns `in` is the index of the feed entry, where it is one of a page's entries
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
