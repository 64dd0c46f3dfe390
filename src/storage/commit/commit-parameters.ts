import { type RawBuilder, sql } from 'kysely';
import { INTERFACE_FIELDS } from '../../core/run-fields.js';
import type { EntryBatch, QuarantineEntry } from '../../sync/ports/index.js';
import { LongParameter } from '../connection/long-parameter.js';
import { identityOf } from './quarantine.js';

/** First byte of PostgreSQL's binary form of `jsonb`, its version; the JSON text follows. */
const JSONB_VERSION = Buffer.of(1);

/**
 * Returns the pages as a parameter of type `jsonb`, each with the number of entries before it. The bytes are sent to PostgreSQL
 * in binary form and are never converted to a string.
 */
export function pagesParameter({ pages }: EntryBatch): LongParameter {
  const pieces: Uint8Array[] = [JSONB_VERSION];
  let before = 0;
  for (const { items, json } of pages) {
    pieces.push(Buffer.from(`${pieces.length === 1 ? '[' : '},'}{"before":${before},"page":`), ...json);
    before += items;
  }
  return new LongParameter([...pieces, Buffer.from('}]')]);
}

/** Returns a JSON array of what the checks found, by position from 1, for the entries that need special treatment. */
export function findingsParameter(batch: EntryBatch): string {
  const findings = batch.entries.flatMap(
    ({ replaced, normalised, repaired, markdownAbsent, isAnswer, pending }, index) => {
      const names = Object.keys(replaced);
      if (names.length === 0 && !repaired && !markdownAbsent && !isAnswer && pending === null) return [];
      const kept = names.filter((name) => !normalised.includes(name));
      const hidden = kept.length === 0 ? null : INTERFACE_FIELDS.filter((name) => !kept.includes(name));
      const marks = { repaired, markdown_absent: markdownAbsent, is_answer: isAnswer, pending };
      return [{ position: index + 1, ...marks, replaced: names.length === 0 ? null : replaced, hidden }];
    },
  );
  return JSON.stringify(findings);
}

/** Returns a JSON array of the unusable entries, by position from 0, without their payloads. */
export function quarantineParameter(entries: readonly QuarantineEntry[]): string {
  return JSON.stringify(
    entries.map((entry, position) => {
      const { scanId, revision, reason, detail, state } = entry;
      return { position, identity: identityOf(entry), scan_id: scanId, revision, reason, detail, state };
    }),
  );
}

/**
 * Returns rows of position and payload. Each payload is a separate binary parameter: in JSON it would have to be text, which is a
 * third longer, and PostgreSQL reads at most 256 MiB of text from JSON. So a payload may be as long as an answer of the service.
 */
export function payloadRows(entries: readonly QuarantineEntry[]): RawBuilder<unknown> {
  if (entries.length === 0) return sql`(SELECT NULL::integer, NULL::bytea WHERE false)`;
  return sql`(VALUES ${sql.join(entries.map(({ payload }, position) => sql`(${position}::integer, ${new LongParameter([payload])}::bytea)`))})`;
}
