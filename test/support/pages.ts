import { factsOf } from '../../src/core/json/scan.js';
import type { EntryBatch, RawPage, RawRun } from '../../src/sync/ports/index.js';

/** A page as the client hands it to the engine. */
export function rawPage(body: string | Uint8Array, serviceDate: Date | null = null): RawPage {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const text = new TextDecoder().decode(bytes);
  const parsed = JSON.parse(text) as { items: unknown[]; nextCursor?: string };
  return {
    body: bytes,
    items: parsed.items,
    facts: factsOf(Buffer.from(text)),
    nextCursor: parsed.nextCursor || null,
    serviceDate,
  };
}

/** A single run as the client hands it to the engine. */
export function rawRun(body: string): RawRun {
  const bytes = Buffer.from(body);
  return { body: bytes, facts: factsOf(bytes), run: JSON.parse(body) };
}

/** The JSON text of a batch's pages. */
export function batchTexts({ pages }: Pick<EntryBatch, 'pages'>): string[] {
  return pages.map(({ json }) => Buffer.concat(json).toString());
}
