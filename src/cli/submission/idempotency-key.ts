import { createHash } from 'node:crypto';

/**
 * The Idempotency-Key (interface 4.1) of a submission. It follows from content, type and environment alone, so that a
 * repeat, by whomever and whenever, finds the run that exists.
 */
export function idempotencyKey(submission: {
  /** SHA-256 of the PDF, hex. */
  readonly sha256: string;
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
}): string {
  const { sha256, documentType, environment } = submission;
  return keyOf([environment, documentType, sha256]);
}

/** The key to submit the same under once more. It follows from the key before, so that this, too, is safe to repeat. */
export function nextIdempotencyKey(key: string): string {
  return keyOf([key]);
}

function keyOf(parts: readonly string[]): string {
  return `scanfeed-${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}
