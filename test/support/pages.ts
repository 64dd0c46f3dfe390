import type { RawPage, RawRun } from '../../src/sync/ports.js';

/** A page as the client hands it to the engine. */
export function rawPage(body: string | Uint8Array, serviceDate: Date | null = null): RawPage {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const text = new TextDecoder().decode(bytes);
  const parsed = JSON.parse(text) as { items: unknown[]; nextCursor?: string };
  return {
    body: bytes,
    text,
    validUtf8: Buffer.from(text).equals(bytes),
    items: parsed.items,
    nextCursor: parsed.nextCursor || null,
    serviceDate,
  };
}

/** A single run as the client hands it to the engine. */
export function rawRun(body: string): RawRun {
  return { body: Buffer.from(body), text: body, validUtf8: true, run: JSON.parse(body) };
}
