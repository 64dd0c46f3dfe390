import { createHash } from 'node:crypto';
import type { AcceptedEntry, CommitCounts, EntryBatch, QuarantineEntry } from '../../src/sync/ports.js';
import { batchTexts } from '../support/pages.js';

/** A row of `runs`, as far as the engine's promises reach. Times in milliseconds since 1970. */
export interface ModelRow {
  scanId: string;
  revision: number;
  status: 'completed' | 'failed';
  /** JSON text of status, failure reason and error, for conflicts and comparisons. */
  content: string;
  data: string | null;
  markdown: string | null;
  markdownAbsent: boolean;
  deliveredAt: string | null;
  feed: string;
  repaired: boolean;
  pending: string | null;
  pendingSince: number;
  nextTryAt: number;
  attempts: number;
}

export interface ModelQuarantine extends Omit<QuarantineEntry, 'state'> {
  state: 'open' | 'repaired' | 'replayed' | 'discarded';
  timesSeen: number;
}

interface WriteSettings {
  readonly now: () => number;
  readonly pendingRetryMs: number;
  readonly keepsHistory: (feed: string) => boolean;
}

/** The rules of the commit statement about rows and quarantine, written a second time. */
export class ModelRows {
  readonly runs = new Map<string, ModelRow>();
  readonly history: ModelRow[] = [];
  /** By `feed/identity`. */
  readonly quarantine = new Map<string, ModelQuarantine>();

  constructor(private readonly settings: WriteSettings) {}

  write(batch: EntryBatch, quarantine: readonly QuarantineEntry[], feed: string): CommitCounts {
    const items = batchTexts(batch).flatMap((text) => (JSON.parse(text) as { items: Record<string, unknown>[] }).items);
    const received = batch.entries.map((entry, index) => this.#rowOf(entry, items[index] ?? {}, feed));
    const best = candidates(received);
    const counts = { inserted: 0, updated: 0, filled: 0, unchanged: 0, stale: 0, conflicts: 0 };
    for (const row of received) {
      const winner = best.get(row.scanId);
      if (winner === undefined || winner === row) continue;
      counts[row.revision < winner.revision ? 'stale' : 'unchanged'] += 1;
      if (row.revision === winner.revision && differs(row, winner)) counts.conflicts += 1;
    }
    const stored: string[] = [];
    for (const row of best.values()) {
      const verdict = this.#store(row);
      counts[verdict.counted] += 1;
      if (verdict.filled) counts.filled += 1;
      if (verdict.conflict) counts.conflicts += 1;
      if (!verdict.filled && (verdict.counted === 'inserted' || verdict.counted === 'updated')) stored.push(row.scanId);
    }
    const bad = this.#oneOfEachIdentity(quarantine, feed);
    for (const row of best.values()) this.#settle(row, feed, bad);
    const states = [...bad].map(([identity, entry]) => this.#quarantine(identity, entry));
    return { ...counts, quarantined: states.filter((state) => state === 'open').length, stored };
  }

  notYetQuarantined(entries: readonly QuarantineEntry[], feed: string): readonly QuarantineEntry[] {
    return entries.filter((entry) => !this.quarantine.has(`${feed}/${identityOf(entry)}`));
  }

  #rowOf(
    { run, replaced, repaired, markdownAbsent, pending }: AcceptedEntry,
    item: Record<string, unknown>,
    feed: string,
  ): ModelRow {
    if (item.scanId !== run.scanId || item.revision !== run.revision) {
      throw new Error(`the text of ${run.scanId} revision ${run.revision} is that of another entry`);
    }
    const fields: Record<string, unknown> = { ...item, ...replaced };
    const { data, markdown, status, failureReason, error, deliveredAt } = fields;
    const now = this.settings.now();
    return {
      scanId: run.scanId,
      revision: run.revision,
      status: run.status,
      content: JSON.stringify([status, failureReason ?? null, error ?? null]),
      data: data === undefined || data === null ? null : JSON.stringify(data),
      markdown: typeof markdown === 'string' ? markdown : null,
      markdownAbsent,
      deliveredAt: typeof deliveredAt === 'string' ? deliveredAt : null,
      feed,
      repaired,
      pending,
      pendingSince: now,
      nextTryAt: now + this.settings.pendingRetryMs,
      attempts: 0,
    };
  }

  #store(row: ModelRow): {
    counted: 'inserted' | 'updated' | 'unchanged' | 'stale';
    conflict: boolean;
    filled?: boolean;
  } {
    const known = this.runs.get(row.scanId);
    if (known === undefined || row.revision > known.revision) {
      this.runs.set(row.scanId, row);
      if (known !== undefined && this.settings.keepsHistory(row.feed)) this.history.push(known);
      return { counted: known === undefined ? 'inserted' : 'updated', conflict: false };
    }
    if (row.revision < known.revision) return { counted: 'stale', conflict: false };
    const conflict = differs(row, known);
    const fuller =
      (known.pending !== null && row.pending === null) ||
      (known.markdown === null && (row.markdown !== null || (row.markdownAbsent && !known.markdownAbsent))) ||
      (known.deliveredAt === null && row.deliveredAt !== null);
    if (!fuller || row.status !== known.status) return { counted: 'unchanged', conflict };
    known.data ??= row.data;
    known.markdown ??= row.markdown;
    known.markdownAbsent = (known.markdownAbsent || row.markdownAbsent) && known.markdown === null;
    known.deliveredAt ??= row.deliveredAt;
    known.repaired ||= row.repaired;
    known.feed = row.feed;
    if (row.pending === null) known.pending = null;
    return { counted: 'updated', conflict, filled: true };
  }

  #settle(row: ModelRow, feed: string, bad: ReadonlyMap<string, QuarantineEntry>): void {
    for (const [identity, entry] of this.quarantine) {
      if (entry.state !== 'open' || entry.scanId !== row.scanId || entry.revision === null) continue;
      if (entry.revision > row.revision || !identity.startsWith(`${feed}/`) || bad.has(identity)) continue;
      entry.state = entry.revision === row.revision ? 'replayed' : 'discarded';
    }
  }

  /** First what is not stored in any form, then the original of what is. */
  #oneOfEachIdentity(entries: readonly QuarantineEntry[], feed: string): ReadonlyMap<string, QuarantineEntry> {
    const rank = (entry: QuarantineEntry) => (this.#isOvertaken(entry) ? 2 : entry.state === 'open' ? 0 : 1);
    const chosen = new Map<string, QuarantineEntry>();
    for (const entry of entries) {
      const identity = `${feed}/${identityOf(entry)}`;
      const other = chosen.get(identity);
      if (other === undefined || rank(entry) < rank(other)) chosen.set(identity, entry);
    }
    return chosen;
  }

  #isOvertaken({ scanId, revision, state }: QuarantineEntry): boolean {
    const stored = scanId === null ? undefined : this.runs.get(scanId)?.revision;
    return state === 'open' && stored !== undefined && revision !== null && stored >= revision;
  }

  #quarantine(identity: string, entry: QuarantineEntry): ModelQuarantine['state'] {
    const state = this.#isOvertaken(entry) ? 'discarded' : entry.state;
    const known = this.quarantine.get(identity);
    if (known === undefined) {
      this.quarantine.set(identity, { ...entry, state, timesSeen: 1 });
      return state;
    }
    known.timesSeen += 1;
    if (known.state === 'open' && state === 'repaired') {
      const { reason, detail, payload } = entry;
      Object.assign(known, { reason, detail, payload });
    }
    if (known.state === 'open') known.state = state;
    return known.state;
  }
}

/**
 * Of each scan its highest revision; of equals those with the status that came first, of them a complete one, one with
 * markdown, one that is known to have none, the first.
 */
function candidates(received: readonly ModelRow[]): ReadonlyMap<string, ModelRow> {
  const firstStatus = new Map<string, string>();
  for (const { scanId, revision, status } of received) {
    const key = `${scanId}#${revision}`;
    if (!firstStatus.has(key)) firstStatus.set(key, status);
  }
  const rank = (row: ModelRow) => [
    row.revision,
    Number(row.status === firstStatus.get(`${row.scanId}#${row.revision}`)),
    Number(row.pending === null),
    Number(row.markdown !== null),
    Number(row.markdownAbsent),
  ];
  const best = new Map<string, ModelRow>();
  for (const row of received) {
    const other = best.get(row.scanId);
    if (other === undefined || isHigher(rank(row), rank(other))) best.set(row.scanId, row);
  }
  return best;
}

function isHigher(a: readonly number[], b: readonly number[]): boolean {
  const first = a.findIndex((value, index) => value !== b[index]);
  return first >= 0 && (a[first] ?? 0) > (b[first] ?? 0);
}

function differs(a: ModelRow, b: ModelRow): boolean {
  return a.content !== b.content || (a.pending === null && b.pending === null && a.data !== b.data);
}

function identityOf({ scanId, revision, payload }: QuarantineEntry): string {
  if (scanId !== null && revision !== null) return `${scanId}#${revision}`;
  return createHash('sha256').update(payload).digest('hex');
}
