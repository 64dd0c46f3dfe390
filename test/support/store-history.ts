import { UNFILTERED } from '../../src/core/feed-filters.js';
import {
  batchOf,
  type CheckedEntry,
  checkEntries,
  withoutMarkdown,
  withPending,
} from '../../src/sync/page/check-entries.js';
import type {
  EntryBatch,
  FeedIdentity,
  FeedRun,
  FeedStore,
  FreshnessClaim,
  LeaseGrant,
  NewPass,
  Pass,
  PendingReason,
  ProcessStore,
  QuarantineEntry,
  StoredPosition,
} from '../../src/sync/ports/index.js';
import { type Choices, choicesFrom } from '../simulation/random-choices.js';
import { entryJson, type Fields, pageJson } from './entries.js';
import { rawPage } from './pages.js';
import { TEST_SCHEMA } from './store.js';

/** One call of the store, with arguments that are valid for both stores. */
export type Operation = {
  readonly [Name in keyof TestedStore]: { readonly name: Name; readonly args: Parameters<TestedStore[Name]> };
}[keyof TestedStore];

export type TestedStore = FeedStore & ProcessStore;

export const HOUR_MS = 3_600_000;

/** A duration that no history exceeds, and one that ends at once. */
const LONG_MS = HOUR_MS;
const OVER_MS = -1_000;
/** Monotonic time before every other one. */
const LONG_AGO_MS = -100_000 * HOUR_MS;
const FAR_AHEAD = new Date('9999-01-01T00:00:00Z');

/**
 * Generates the calls of one history, each based on the responses to the previous ones: two feeds, three holders, a few scans that
 * both feeds deliver, pages from right and wrong cursors, current and lost leases.
 */
export class StoreHistory {
  readonly #choices: Choices;
  readonly #grants: LeaseGrant[] = [];
  readonly #cursors = new Map<string, string | null>();
  /** Those of the cursors as last read, by feed. */
  readonly #origins = new Map<string, string | null>();
  /** The passes as last read, by feed and kind. */
  readonly #passes = new Map<string, Pass>();
  readonly feeds: readonly string[];
  readonly scanIds: readonly string[];
  readonly holders: readonly string[];
  #cursorsMade = 0;

  /** @param hour whole hours since 1970 that no other history uses for its delivery times */
  constructor(
    seed: number,
    private readonly hour: number,
  ) {
    this.#choices = choicesFrom(seed);
    this.feeds = [`history-${seed}-a`, `history-${seed}-b`];
    this.holders = ['x', 'y', 'z'].map((name) => `history-${seed}-${name}`);
    this.scanIds = Array.from({ length: 4 }, (_, n) => `history-${seed}-scan-${n}`);
  }

  /** Returns the next call. */
  next(): Operation {
    const { pick } = this.#choices;
    const lease = this.#lease();
    if (lease === null || this.#choices.chance(0.1)) return this.#acquire();
    const feed = pick(this.feeds);
    return pick([
      () => this.#commitPage(lease),
      () => this.#commitPage(lease),
      () => this.#commitPage(lease),
      () => this.#commitPage(lease),
      () => this.#commitResults(lease),
      () => this.#pass(lease),
      () => this.#pass(lease),
      () => this.#pass(lease),
      () => this.#pass(lease),
      () => this.#postpone(lease),
      () => this.#move(lease),
      (): Operation => ({ name: 'storeStuck', args: [lease, this.#choices.chance(0.5)] }),
      () => this.#renewProcess(),
      () => this.#renewProcess(),
      (): Operation => ({ name: 'removeProcess', args: [pick(this.holders)] }),
      (): Operation => ({ name: 'forgetFreshness', args: [pick(this.holders)] }),
      (): Operation => ({ name: 'releaseLease', args: [lease] }),
      (): Operation => ({ name: 'readLastPass', args: [feed, pick(['recent', 'full'])] }),
      (): Operation => ({ name: 'readPosition', args: [feed] }),
      (): Operation => ({ name: 'readEarlierPositions', args: [feed] }),
      (): Operation => ({ name: 'readStatus', args: [feed] }),
      (): Operation => ({ name: 'readFeeds', args: [[...this.feeds, 'never-started']] }),
      (): Operation => ({ name: 'notYetQuarantined', args: [feed, this.#entries().quarantine] }),
      (): Operation => ({ name: 'duePending', args: [feed, 50] }),
      (): Operation => ({ name: 'findStored', args: [this.scanIds] }),
      (): Operation => ({ name: 'findDelivered', args: [feed, this.#time(), this.#time(), 10] }),
    ])();
  }

  /** Records a response for the next calls. */
  learn(operation: Operation, result: unknown): void {
    if (operation.name === 'acquireLease' && result !== null && !('refused' in (result as object))) {
      this.#grants.push(result as LeaseGrant);
    }
    if (operation.name === 'readPosition') this.#origins.set(operation.args[0], (result as StoredPosition).origin);
    if (operation.name === 'nextPass' && result !== null) this.#found(operation.args[0], result as Pass);
    if (operation.name === 'beginPass' && result !== null) this.#found(operation.args[0].feed, result as Pass);
    if (operation.name === 'commitPass' && (result as { kind: string }).kind === 'committed') {
      const [{ lease, id, to }] = operation.args;
      for (const pass of this.#passes.values()) if (pass.id === id) this.#found(lease.feed, { ...pass, cursor: to });
    }
    if (operation.name === 'movePosition' && result === true) {
      this.#cursors.set(operation.args[0].feed, operation.args[2].cursor);
    }
    if (operation.name === 'commitPage' && (result as { kind: string }).kind === 'committed') {
      this.#cursors.set(operation.args[0].lease.feed, operation.args[0].to);
    }
  }

  #lease(): LeaseGrant | null {
    const { chance, pick } = this.#choices;
    // Usually the last lease of a feed; the earlier ones are lost.
    const latest = this.#grants.at(-1) ?? null;
    return latest !== null && chance(0.2) ? pick(this.#grants) : latest;
  }

  #renewProcess(): Operation {
    const { chance, pick } = this.#choices;
    const unusable = chance(0.2) ? [TEST_SCHEMA] : [];
    const ttlMs = chance(0.8) ? LONG_MS : OVER_MS;
    return {
      name: 'renewProcess',
      args: [{ holder: pick(this.holders), feeds: 2, unusable, ttlMs }],
    };
  }

  #acquire(): Operation {
    const { chance, pick } = this.#choices;
    const identity: FeedIdentity = {
      name: pick(this.feeds),
      baseUrl: chance(0.05) ? 'https://elsewhere.test/v1' : 'https://service.test/v1',
      filters: {
        ...UNFILTERED,
        status: pick([['completed'], ['completed', 'failed']] as const),
        environment: pick(['prod', 'prod', 'all'] as const),
        documentType: pick([null, null, 'rechnung']),
      },
      keepHistory: chance(0.8),
      start: pick(['beginning', 'now', 'live', 'live', this.#time()] as const),
    };
    return { name: 'acquireLease', args: [identity, pick(this.holders)] };
  }

  #commitPage(lease: LeaseGrant): Operation {
    const { chance, pick } = this.#choices;
    const stored = this.#cursors.get(lease.feed) ?? null;
    const from = chance(0.9) ? stored : pick([null, 'another']);
    const to = chance(0.8) ? `cursor-${++this.#cursorsMade}` : from;
    const content = chance(0.1) ? { batch: batchOf([]), quarantine: [] } : this.#entries();
    return { name: 'commitPage', args: [{ lease, from, to, ...content, freshness: this.#freshness() }] };
  }

  #commitResults(lease: LeaseGrant): Operation {
    const { batch, quarantine } = this.#entries();
    const answers = this.#choices.chance(0.5) ? batch.map((entry) => ({ ...entry, isAnswer: true })) : batch;
    return { name: 'commitResults', args: [lease, answers, quarantine] };
  }

  #found(feed: string, pass: Pass): void {
    this.#passes.set(`${feed}/${pass.kind}`, pass);
  }

  #beginPass(lease: LeaseGrant, kind: NewPass['kind']): Operation {
    const { pick } = this.#choices;
    const range = { since: pick([null, this.#time()]), until: this.#time() };
    return { name: 'beginPass', args: [lease, { kind, ...range, completeAsOf: pick([this.#time(), FAR_AHEAD]) }] };
  }

  /** Commits a page of a known pass, which may have ended; or reads or begins a pass. */
  #pass(lease: LeaseGrant): Operation {
    const { between, chance, pick } = this.#choices;
    const known = [...this.#passes.entries()].filter(([name]) => name.startsWith(`${lease.feed}/`));
    if (known.length === 0 || chance(0.3)) {
      const kind = pick(['recent', 'full', 'history'] as const);
      return kind !== 'history' && chance(0.7)
        ? this.#beginPass(lease, kind)
        : { name: 'nextPass', args: [lease.feed, kind] };
    }
    const [, found] = pick(known);
    const { id, begunAt, kind, cursor } = found;
    if ((kind === 'recent' || kind === 'full') && chance(0.2))
      return { name: 'readLastPass', args: [lease.feed, kind] };
    const from = chance(0.9) ? cursor : 'another';
    const until = chance(0.95) ? found.until : this.#time();
    const to = pick([from, `cursor-${++this.#cursorsMade}`]);
    const end = chance(kind === 'history' ? 0.6 : 0.2) ? ('no' as const) : pick(['yes', 'ifNothingNew'] as const);
    const progress = {
      deliveredUpTo: pick([null, this.#time()]),
      entries: between(0, 5),
      pace: null,
      cachedAt: chance(0.1) ? LONG_AGO_MS : null,
    };
    const feedOrigin = chance(0.7) ? (this.#origins.get(lease.feed) ?? null) : null;
    const commit = { lease, id, begunAt, until, from, to, end, ...this.#entries(), ...progress, feedOrigin };
    return { name: 'commitPass', args: [commit] };
  }

  #postpone(lease: LeaseGrant): Operation {
    const { between, pick } = this.#choices;
    const [scanId, revision] = [pick(this.scanIds), between(1, 3)];
    const nextTryInMs = pick([OVER_MS, LONG_MS]);
    return { name: 'postponePending', args: [lease, [{ scanId, revision, reason: 'not_found', nextTryInMs }]] };
  }

  #move(lease: LeaseGrant): Operation {
    const { chance, pick } = this.#choices;
    const from = chance(0.8) ? (this.#cursors.get(lease.feed) ?? null) : 'another';
    const to = pick([
      { cursor: `cursor-${++this.#cursorsMade}`, since: null },
      { cursor: null, since: this.#time() },
      { cursor: null, since: null },
    ]);
    return { name: 'movePosition', args: [lease, from, to] };
  }

  /** Ages are whole hours, so that the time between the calls to the two stores makes no difference. */
  #freshness(): FreshnessClaim {
    const { between, pick } = this.#choices;
    const age = () => -HOUR_MS * between(0, 4);
    return {
      end: pick(['yes', 'ifNothingNew', 'no']),
      polledAt: age(),
      completeUpTo: pick([null, age()]),
      lastDeliveredAt: pick([null, this.#time()]),
    };
  }

  /** A page of entries as the engine passes them, with the malformed ones in quarantine. */
  #entries(): { readonly batch: EntryBatch; readonly quarantine: readonly QuarantineEntry[] } {
    const { between, chance, pick } = this.#choices;
    const page = rawPage(pageJson(Array.from({ length: between(0, 5) }, () => this.#entry())));
    const checked = checkEntries(page);
    const answers = checkEntries(
      rawPage(pageJson(checked.entries.map(({ accepted: { run } }) => this.#answer(run)))),
    ).entries;
    const reasons: readonly PendingReason[] = ['not_loaded', 'processing', 'still_truncated'];
    const found = (entry: CheckedEntry, index: number) => {
      const answer = answers[index];
      if (answer !== undefined && chance(0.1)) return { ...withPending(entry, 'invalid_result'), result: answer };
      if (chance(0.2)) return withPending(entry, pick(reasons));
      return !entry.accepted.run.hasMarkdown && chance(0.3) ? withoutMarkdown(entry) : entry;
    };
    const entries = checked.entries.map(found);
    // It is undefined which of two equal entries is kept.
    const seen = new Set<string>();
    const quarantine = checked.quarantine.filter(({ scanId, revision, payload }) => {
      const identity = scanId === null ? Buffer.from(payload).toString() : `${scanId}#${revision}`;
      return !seen.has(identity) && seen.add(identity);
    });
    return { batch: batchOf(entries), quarantine };
  }

  /** The response of the single-run endpoint for an entry, possibly with a higher revision. */
  #answer({ scanId, revision }: Pick<FeedRun, 'scanId' | 'revision'>): string {
    return this.#entry({ scanId, revision: revision + Number(this.#choices.chance(0.1)), status: 'completed' });
  }

  #entry(over: Fields = {}): string {
    const { between, chance, pick } = this.#choices;
    const failed = chance(0.15);
    // Any optional field may be missing or null (interface 2.1).
    const optional = (value: unknown) => pick([value, value, null, undefined]);
    return entryJson({
      scanId: chance(0.05) ? null : pick(this.scanIds),
      revision: between(1, 3),
      environment: chance(0.1) ? 'test' : 'prod',
      documentType: {
        slug: chance(0.05) ? 'lieferschein' : (optional('rechnung') ?? null),
        name: optional('Rechnung') ?? null,
      },
      partnerName: optional('Muster GmbH'),
      partnerTestMode: pick([true, false, undefined, undefined]),
      submittedAt: optional(this.#time().toISOString()),
      completedAt: optional(this.#time().toISOString()),
      neu: optional(pick([1, 'zwei'])),
      status: chance(0.08) ? 'archived' : failed ? 'failed' : 'completed',
      data: failed ? undefined : pick([{ value: 1 }, { value: 1 }, { value: 2 }, undefined]),
      failureReason: failed ? pick(['unreadable', 'empty']) : undefined,
      error: failed ? 'nicht lesbar' : undefined,
      markdown: pick([undefined, undefined, '# one', '# two']),
      deliveredAt: pick([undefined, this.#time().toISOString()]),
      // An invalid optional value is replaced, and text that cannot be stored is repaired.
      ocrConfidence: chance(0.05) ? 'high' : optional(0.9),
      fileName: chance(0.05) ? 'half a pair \ud800' : 'rechnung.pdf',
      ...over,
    });
  }

  /** One of the hours that belong to this history. */
  #time(): Date {
    return new Date((this.hour + this.#choices.between(0, 9)) * HOUR_MS);
  }
}
