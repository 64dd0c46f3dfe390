import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { CommitCounts } from '../../src/core/counts.js';
import type { AcceptedEntry, EntryBatch, QuarantineEntry } from '../../src/sync/ports/index.js';
import { storedFields } from '../support/pages.js';
import { contradicts, latestTestMode, pendingOf, type Sources, steeringDiffers, unite } from './model-union.js';

/** The columns of `runs` that the promises of the engine cover. Times in milliseconds since 1970. */
export interface ModelRow extends Sources {
  scanId: string;
  revision: number;
  feed: string;
  pendingSince: number;
  nextTryAt: number;
  attempts: number;
}

/** An entry as it was received. */
interface ModelEntry extends ModelRow {
  isAnswer: boolean;
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

/** A second implementation of the commit statement's rules for rows and quarantine. */
export class ModelRows {
  readonly runs = new Map<string, ModelRow>();
  readonly history: ModelRow[] = [];
  /** By `feed/identity`. */
  readonly quarantine = new Map<string, ModelQuarantine>();

  constructor(private readonly settings: WriteSettings) {}

  write(batch: EntryBatch, quarantine: readonly QuarantineEntry[], feed: string): CommitCounts {
    const received = batch.map((entry) => this.#rowOf(entry, feed));
    const counts = { inserted: 0, updated: 0, filled: 0, unchanged: 0, stale: 0, conflicts: 0 };
    const stored: string[] = [];
    const highest: ModelRow[] = [];
    for (const scanId of new Set(received.map((entry) => entry.scanId))) {
      const ofScan = received.filter((entry) => entry.scanId === scanId);
      const revision = Math.max(...ofScan.map((entry) => entry.revision));
      const newest = ofScan.filter((entry) => entry.revision === revision);
      const deliveries = (entries: readonly ModelEntry[]) => entries.filter(({ isAnswer }) => !isAnswer).length;
      counts.stale += deliveries(ofScan) - deliveries(newest);
      counts.unchanged += Math.max(0, deliveries(newest) - 1);
      const { verdict, row, conflicts } = this.#store(newest, ofScan);
      counts[verdict === 'filled' ? 'updated' : verdict] += 1;
      if (verdict === 'filled') counts.filled += 1;
      if (verdict === 'inserted' || verdict === 'updated') stored.push(scanId);
      counts.conflicts += conflicts;
      highest.push(row);
    }
    const bad = this.#oneOfEachIdentity(quarantine, feed);
    for (const row of highest) this.#settle(row, feed, bad);
    const states = [...bad].map(([identity, entry]) => this.#quarantine(identity, entry));
    return { ...counts, quarantined: states.filter((state) => state === 'open').length, stored };
  }

  /** Copies all rows. Returns a function that restores them. */
  snapshot(): () => void {
    const { runs, history, quarantine } = this;
    const kept = structuredClone({ runs, history, quarantine });
    return () => {
      replaceEntries(runs, kept.runs);
      history.splice(0, history.length, ...kept.history);
      replaceEntries(quarantine, kept.quarantine);
    };
  }

  notYetQuarantined(entries: readonly QuarantineEntry[], feed: string): readonly QuarantineEntry[] {
    return entries.filter((entry) => !this.quarantine.has(`${feed}/${identityOf(entry)}`));
  }

  #rowOf(entry: AcceptedEntry, feed: string): ModelEntry {
    const { run, readExtra, replaced, repaired, markdownAbsent, isAnswer, pending } = entry;
    const item = storedFields(entry);
    if (item.scanId !== run.scanId || item.revision !== run.revision) {
      throw new Error(`the text of ${run.scanId} revision ${run.revision} is that of another entry`);
    }
    const fields: Record<string, unknown> = { ...item, ...replaced };
    const text = (name: string) => (typeof fields[name] === 'string' ? (fields[name] as string) : null);
    const { data, documentType, environment, ocrConfidence, partnerTestMode } = fields;
    const { slug = null, name = null } = documentType as { slug?: string | null; name?: string | null };
    const extra = readExtra && JSON.parse(Buffer.concat(readExtra()).toString());
    const now = this.settings.now();
    // No spread: it makes the literal several times as slow, and this is called for every entry.
    return {
      scanId: run.scanId,
      revision: run.revision,
      status: run.status,
      environment: environment as 'prod' | 'test',
      testMode: partnerTestMode === true,
      testModeRevision: typeof partnerTestMode === 'boolean' ? run.revision : null,
      slug,
      typeName: name,
      partnerName: text('partnerName'),
      ocrConfidence: typeof ocrConfidence === 'number' ? ocrConfidence : null,
      reason: text('failureReason'),
      error: text('error'),
      data: data === undefined || data === null ? null : JSON.stringify(data),
      submittedAt: text('submittedAt'),
      completedAt: text('completedAt'),
      deliveredAt: text('deliveredAt'),
      markdown: text('markdown'),
      extra,
      markdownAbsent,
      repaired,
      pending,
      isAnswer,
      feed,
      pendingSince: now,
      nextTryAt: pending === 'no_memory' ? now : now + this.settings.pendingRetryMs,
      attempts: 0,
    };
  }

  /**
   * @param entries entries of one scan and its highest revision, in their order
   * @param ofScan the entries of all revisions, which may state the test mode
   */
  #store(
    entries: readonly ModelEntry[],
    ofScan: readonly ModelEntry[],
  ): {
    readonly verdict: 'inserted' | 'updated' | 'filled' | 'unchanged' | 'stale';
    readonly row: ModelRow;
    readonly conflicts: number;
  } {
    const [first] = entries;
    if (first === undefined) throw new Error('no entries');
    const known = this.runs.get(first.scanId);
    const isKnown = known !== undefined && known.revision === first.revision;
    const { isAnswer: _, ...begin } = first;
    let row: ModelRow = isKnown ? known : begin;
    let conflicts = 0;
    for (const entry of isKnown ? entries : entries.slice(1)) {
      if (contradicts(row, entry) || steeringDiffers(row, entry)) conflicts += 1;
      const { pendingSince, nextTryAt, attempts } = row.pending === null ? entry : row;
      row = { ...row, ...unite(row, entry), pendingSince, nextTryAt, attempts };
    }
    const wasAnswered = entries.some(({ isAnswer }) => isAnswer);
    if (!isKnown && known !== undefined && known.revision > row.revision) {
      const restated = withTestMode(known, ofScan, false);
      if (restated === known) return { verdict: 'stale', row, conflicts };
      const isComplete = restated.pending === null;
      this.runs.set(row.scanId, { ...this.#asPending(restated, known), ...(isComplete && { attempts: 0 }) });
      return { verdict: 'filled', row, conflicts };
    }
    row = withTestMode(row, known === undefined ? ofScan : [...ofScan, known], wasAnswered);
    row = isKnown ? this.#asPending(row, known) : row;
    if (row.pending === null) row = { ...row, attempts: 0 };
    if (isKnown && isSame(known, row)) return { verdict: 'unchanged', row, conflicts };
    this.runs.set(row.scanId, { ...row, feed: first.feed });
    if (isKnown) return { verdict: 'filled', row, conflicts };
    if (known !== undefined && this.settings.keepsHistory(row.feed)) this.history.push(known);
    return { verdict: known === undefined ? 'inserted' : 'updated', row, conflicts };
  }

  /** Sets when a row is asked for that was complete before. */
  #asPending(row: ModelRow, before: ModelRow): ModelRow {
    if (before.pending !== null || row.pending !== 'test_mode_unknown') return row;
    const now = this.settings.now();
    return { ...row, pendingSince: now, nextTryAt: now + this.settings.pendingRetryMs, attempts: 0 };
  }

  #settle(row: ModelRow, feed: string, bad: ReadonlyMap<string, QuarantineEntry>): void {
    for (const [identity, entry] of this.quarantine) {
      if (entry.state !== 'open' || entry.scanId !== row.scanId || entry.revision === null) continue;
      if (entry.revision > row.revision || !identity.startsWith(`${feed}/`) || bad.has(identity)) continue;
      entry.state = entry.revision === row.revision ? 'replayed' : 'discarded';
    }
  }

  /** Chooses one entry per identity: unstored ones before the originals of repaired ones, outdated ones last. */
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

/** Returns the row with the test mode that it and the other sources, of any revision, state. */
function withTestMode(row: ModelRow, sources: readonly Sources[], wasAnswered: boolean): ModelRow {
  const latest = sources.reduce(latestTestMode, latestTestMode(row, row));
  if (latest.testModeRevision === row.testModeRevision && latest.testMode === row.testMode) return row;
  const restated = { ...row, ...latest };
  return { ...restated, pending: pendingOf(restated, wasAnswered) };
}

/** Returns whether the union equals the stored row. */
function isSame(before: ModelRow, after: ModelRow): boolean {
  const { pendingSince, nextTryAt } = before;
  return isDeepStrictEqual(before, { ...after, pendingSince, nextTryAt });
}

function identityOf({ scanId, revision, payload }: QuarantineEntry): string {
  if (scanId !== null && revision !== null) return `${scanId}#${revision}`;
  return createHash('sha256').update(payload).digest('hex');
}

export function replaceEntries<V>(map: Map<string, V>, by: ReadonlyMap<string, V>): void {
  map.clear();
  for (const [key, value] of by) map.set(key, value);
}
