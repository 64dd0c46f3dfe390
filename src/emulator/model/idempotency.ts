/**
 * Idempotency keys of all organizations, the latest `most`. A repeat is identical when file, environment and
 * document type are. The interface names file and environment; a request for another document type is not "an
 * identical request" either, and answering it with a run of the first type would mislead, so it counts as different.
 */
export class IdempotencyKeys {
  readonly #keys = new Map<string, { readonly request: string; readonly scanId: string }>();

  constructor(readonly most: number) {}

  /** The run that was made under the key; `conflict` when that was another request; null when the key is new. */
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
