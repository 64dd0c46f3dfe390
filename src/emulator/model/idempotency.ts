/**
 * Idempotency keys of all organizations, the latest `most`. A repeat is identical if file, environment and document type are
 * identical. The interface names only file and environment, but answering a request for another document type with a run of
 * the first type would be misleading, so it counts as different.
 */
export class IdempotencyKeys {
  readonly #keys = new Map<string, { readonly request: string; readonly scanId: string }>();

  constructor(readonly most: number) {}

  /** Returns the run that was created under the key, `conflict` if the request differs, or null if the key is new. */
  find(organization: string, key: string, request: string): string | 'conflict' | null {
    const known = this.#keys.get(JSON.stringify([organization, key]));
    if (known === undefined) return null;
    return known.request === request ? known.scanId : 'conflict';
  }

  remember(organization: string, key: string, request: string, scanId: string): void {
    this.#keys.set(JSON.stringify([organization, key]), { request, scanId });
    for (const oldest of this.#keys.keys()) {
      if (this.#keys.size <= this.most) break;
      this.#keys.delete(oldest);
    }
  }
}
