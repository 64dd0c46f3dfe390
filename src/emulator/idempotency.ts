/** What a submission is compared by when its Idempotency-Key comes again. */
export interface SubmissionFingerprint {
  readonly fileHash: string;
  readonly environment: string;
  readonly documentType: string;
}

interface Remembered {
  readonly fingerprint: SubmissionFingerprint;
  readonly scanId: string;
}

/**
 * Idempotency keys of all organizations, the latest `most`. A repeat is identical when file, environment and
 * document type are. The interface names file and environment; a request for another document type is not "an
 * identical request" either, and answering it with a run of the first type would mislead, so it counts as different.
 */
export class IdempotencyKeys {
  readonly #keys = new Map<string, Remembered>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** The run that was made under the key; `conflict` when that was another request; null when the key is new. */
  find(organization: string, key: string, fingerprint: SubmissionFingerprint): string | 'conflict' | null {
    const known = this.#keys.get(JSON.stringify([organization, key]));
    if (known === undefined) return null;
    const first = known.fingerprint;
    const same =
      first.fileHash === fingerprint.fileHash &&
      first.environment === fingerprint.environment &&
      first.documentType === fingerprint.documentType;
    return same ? known.scanId : 'conflict';
  }

  remember(organization: string, key: string, fingerprint: SubmissionFingerprint, scanId: string): void {
    this.#keys.set(JSON.stringify([organization, key]), { fingerprint, scanId });
    for (const oldest of this.#keys.keys()) {
      if (this.#keys.size <= this.#most) break;
      this.#keys.delete(oldest);
    }
  }
}
