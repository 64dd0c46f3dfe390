/** A run as the service stores it (interface 2.1), and its generation from its number. */

import { type DocumentType, documentTypes, failures, partners } from './catalogue.js';
import { type DocumentRequest, dataJson, makeDocument } from './documents.js';
import { confidence } from './json-text.js';
import { draw, hash } from './random.js';
import { markdownOf, rawOcrJson } from './recognized-text.js';
import { scanIdOf } from './scan-ids.js';
import type { Switches } from './switch-types.js';

/** State of a finished run (interface 3). */
export type Status = 'completed' | 'failed';
/** Environment of a run (interface 1.5). */
export type Environment = 'prod' | 'test';
/** Values that the feed omits, regardless of their size. */
export type Withheld = 'data' | 'markdown' | 'both';

/** One finished revision of a run. Times in milliseconds since 1970. */
export interface RunVersion {
  /** Identifies the run (interface 2.1). */
  readonly scanId: string;
  /** Starts at 1; each correction or retry raises it. */
  readonly revision: number;
  /** Its state. */
  readonly status: Status;
  /** Its environment. */
  readonly environment: Environment;
  /** Slug and display name of its document type. */
  readonly documentType: { readonly slug: string | null; readonly name: string | null };
  /** File name of the submitted PDF. */
  readonly fileName: string;
  /** The recognized sender, or null. */
  readonly partnerName: string | null;
  /** Whether the sender is in test mode. */
  readonly partnerTestMode: boolean;
  /** JSON text of a number, or null. */
  readonly ocrConfidence: string | null;
  /** Machine-readable reason of a failed run. */
  readonly failureReason: string | null;
  /** German message of a failed run. */
  readonly error: string | null;
  /** Time of the submission. */
  readonly submittedAt: number | null;
  /** Time of the completion. */
  readonly completedAt: number | null;
  /** Time of delivery, its place in the feed. */
  readonly deliveredAt: number;
  /** Random value in [0, 1): the run is truncated if it is below the switch `truncatedShare`. */
  readonly truncationDraw: number;
  /** Values withheld by a script; undefined if size and share decide. */
  readonly withheld: Withheld | false | undefined;
  /** The result as JSON text; null for failed runs. */
  readonly data: () => string | null;
  /** The recognized text. */
  readonly markdown: () => string | null;
  /** The raw OCR result as JSON text; null for failed runs. */
  readonly rawOcr: () => string | null;
}

/** Parameters of all runs of an organization. */
export interface RunSource {
  readonly seed: number;
  readonly runBytes: number;
}

// Purposes of the draws: one number each, so that no two decisions depend on each other.
const purpose = {
  environment: 1,
  status: 2,
  type: 3,
  partner: 4,
  truncation: 5,
  failure: 6,
  document: 7,
  confidence: 8,
  testMode: 9,
};

function documentTypeOf(source: RunSource, number: number): DocumentType {
  // Each type gets 55% of the rest, so that a few types make up most of the traffic.
  let rest = draw(source.seed, number, purpose.type);
  for (let i = 0; i < documentTypes.length - 1; i++) {
    if (rest < 0.55) return documentTypes[i] as DocumentType;
    rest = (rest - 0.55) / 0.45;
  }
  return documentTypes.at(-1) as DocumentType;
}

/** Draws the facts of a generated run. */
export function factsOf(
  source: RunSource,
  shares: Pick<Switches, 'failureShare' | 'testEnvironmentShare'>,
  number: number,
): VersionRequest['facts'] {
  return {
    status: draw(source.seed, number, purpose.status) < shares.failureShare ? 'failed' : 'completed',
    environment: draw(source.seed, number, purpose.environment) < shares.testEnvironmentShare ? 'test' : 'prod',
    documentType: documentTypeOf(source, number),
  };
}

export interface VersionRequest {
  readonly number: number;
  readonly revision: number;
  readonly submittedAt: number;
  readonly completedAt: number;
  readonly deliveredAt: number;
  /** Properties on which others depend. */
  readonly facts: Pick<RunVersion, 'status' | 'environment' | 'documentType'>;
}

/** Generates a revision of a run. Pure. */
export function makeVersion(source: RunSource, request: VersionRequest): RunVersion {
  const { number, facts, revision } = request;
  const { slug, name } = facts.documentType;
  const partnerIndex = hash(source.seed, number, purpose.partner) % (partners.length + 1);
  const partner = partners[partnerIndex] ?? null;
  const failed = facts.status === 'failed';
  const failure = failures[hash(source.seed, number, purpose.failure) % failures.length];
  const documentRequest: DocumentRequest = {
    kind: slug ?? 'beleg',
    title: name ?? 'Beleg',
    seed: hash(source.seed, number, purpose.document),
    revision,
    at: request.completedAt,
    partner: partner ?? (partners[0] as (typeof partners)[number]),
    runBytes: source.runBytes,
  };
  // Generated on demand, so that runs in memory stay small.
  const document = () => makeDocument(documentRequest);
  const level = 7000 + (hash(source.seed, number, purpose.confidence) % 3000);
  const markdown = () => (failed ? null : markdownOf(document()));
  return {
    scanId: scanIdOf(source.seed, number),
    revision,
    ...facts,
    fileName: `${name ?? 'Beleg'}_${String(number % 2 ** 31).padStart(7, '0')}.pdf`,
    partnerName: partner?.name ?? null,
    // Test mode is a property of a partner and a document type.
    partnerTestMode:
      partner !== null && draw(source.seed, partnerIndex * 31 + documentRequest.kind.length, purpose.testMode) < 0.08,
    ocrConfidence: failed ? null : confidence(level),
    failureReason: failed ? (failure?.[0] ?? null) : null,
    error: failed ? (failure?.[1] ?? null) : null,
    submittedAt: request.submittedAt,
    completedAt: request.completedAt,
    deliveredAt: request.deliveredAt,
    truncationDraw: draw(source.seed, number, purpose.truncation),
    withheld: undefined,
    data: () => (failed ? null : dataJson(document())),
    markdown,
    rawOcr: () => (failed ? null : rawOcrJson(markdownOf(document()), level)),
  };
}
