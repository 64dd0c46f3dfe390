import { addCounts, NO_COUNTS } from '../outcome/counts.js';
import { troubleOf } from '../outcome/trouble.js';
import { commitHalves, isolateRefused, type Parts, type PartWriter } from './isolate-refused.js';
import { batchOf, type DraftEntry, type PageDraft } from './page-draft.js';
import type { CommitOutcome, PageJson, QuarantineEntry } from './ports.js';
import type { ResolvedPart } from './resolve-truncated.js';

/** Bytes of the entries of one statement; an entry by itself may have more. Each statement holds them two or three times. */
const STATEMENT_BYTES = 4 * 1024 * 1024;

/**
 * Writes a page in as many parts as memory asks for, mostly one; the last takes the position and what goes to quarantine
 * with it. What was loaded for a part is given back before the rest is loaded. Where PostgreSQL refuses a value, all but
 * the entries that hold such values are stored.
 * @returns with the counts of all parts
 */
export async function writePage(
  write: PartWriter,
  draft: PageDraft,
  resolved: ResolvedPart,
  signal: AbortSignal,
): Promise<CommitOutcome> {
  let { counts, refused }: Parts = { counts: NO_COUNTS, refused: [] };
  for (let part = resolved; ; ) {
    const { rest } = part;
    if (rest === null) return writeRest(write, part, draft, { counts, refused });
    const written = await writeParts(write, inStatements(part.entries, draft));
    part.release();
    if (written === 'fenced') return { kind: 'fenced' };
    counts = addCounts(counts, written.counts);
    refused = [...refused, ...written.refused];
    part = await rest(signal);
  }
}

/** All that is left of the page. */
async function writeRest(
  write: PartWriter,
  part: ResolvedPart,
  draft: PageDraft,
  before: Parts,
): Promise<CommitOutcome> {
  const statements = inStatements(part.entries, draft);
  const last = statements.pop() ?? [];
  const written = await writeParts(write, statements);
  if (written === 'fenced') return { kind: 'fenced' };
  const bad = [...draft.quarantine, ...originalsOf(last), ...before.refused, ...written.refused];
  const outcome = await writeLast(write, last, bad, draft);
  part.release();
  if (outcome.kind === 'fenced') return outcome;
  return { ...outcome, counts: addCounts(addCounts(before.counts, written.counts), outcome.counts) };
}

async function writeParts(write: PartWriter, groups: readonly (readonly DraftEntry[])[]): Promise<Parts | 'fenced'> {
  let { counts, refused }: Parts = { counts: NO_COUNTS, refused: [] };
  for (const entries of groups) {
    const written = await writePart(write, entries);
    if (written === 'fenced') return written;
    counts = addCounts(counts, written.counts);
    refused = [...refused, ...written.refused];
  }
  return { counts, refused };
}

async function writePart(write: PartWriter, entries: readonly DraftEntry[]): Promise<Parts | 'fenced'> {
  const originals = originalsOf(entries);
  try {
    const outcome = await write({ entries, batch: batchOf(entries, null), quarantine: originals, last: false });
    return outcome.kind === 'fenced' ? 'fenced' : { counts: outcome.counts, refused: [] };
  } catch (error) {
    if (troubleOf(error).remedy !== 'data') throw error;
    const parts = await commitHalves(write, entries);
    return parts === 'fenced' ? parts : { ...parts, refused: [...originals, ...parts.refused] };
  }
}

function writeLast(
  write: PartWriter,
  entries: readonly DraftEntry[],
  quarantine: readonly QuarantineEntry[],
  draft: PageDraft,
): Promise<CommitOutcome> {
  return write({ entries, batch: batchOf(entries, draft), quarantine, last: true }).catch((error) =>
    isolateRefused(write, entries, quarantine, error),
  );
}

/** What loaded results were before their text was repaired. */
function originalsOf(entries: readonly DraftEntry[]): readonly QuarantineEntry[] {
  return entries.flatMap(({ fallback, original }) => (fallback !== undefined && original !== null ? [original] : []));
}

/** The entries in groups, in their order, so that no statement becomes large. */
function inStatements(entries: readonly DraftEntry[], { pages }: PageDraft): (readonly DraftEntry[])[] {
  if (entries.length === 0) return [];
  const allOfPage = entries.every((entry) => entry.fallback === undefined);
  if (allOfPage && sizeOf(pages) <= STATEMENT_BYTES) return [entries];
  const groups: DraftEntry[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const size = sizeOf([{ json: entry.json() }, { json: entry.fallback?.json() ?? [] }]);
    bytes += size;
    if (bytes <= STATEMENT_BYTES) groups.at(-1)?.push(entry);
    else {
      groups.push([entry]);
      bytes = size;
    }
  }
  return groups;
}

function sizeOf(pages: readonly Pick<PageJson, 'json'>[]): number {
  return pages.reduce((sum, { json }) => json.reduce((size, piece) => size + piece.length, sum), 0);
}
