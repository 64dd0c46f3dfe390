import type { FeedRequest, FeedService, RawPage, RawRun } from '../../src/sync/ports.js';
import { entryJson, pageJson } from '../support/entries.js';
import { rawPage, rawRun } from '../support/pages.js';
import type { VirtualClock } from '../support/virtual-clock.js';
import { ModelTrouble } from './model-service.js';
import type { Choices } from './random-choices.js';

/** A delivery in the one sequence of the feed. */
export interface Delivery {
  /** Place in the sequence. */
  readonly key: number;
  readonly scanId: string;
  readonly revision: number;
  readonly json: string;
  /** Virtual time, milliseconds. */
  readonly deliveredAt: number;
  /** From when on the feed lists it. */
  readonly visibleFrom: number;
  /** Placed where a cursor may have passed already. */
  readonly behind: boolean;
  readonly usable: boolean;
}

export interface ServiceTraits {
  readonly movingCursors: boolean;
  /** Corrections go to the end of the sequence, or somewhere before it. */
  readonly corrections: 'ahead' | 'behind';
  readonly truncatedShare: number;
  readonly badShare: number;
  readonly lateShare: number;
}

/** A page that was served, so that a commit can be held against it. */
export interface ServedPage {
  readonly from: string | null;
  readonly next: string;
  readonly deliveries: readonly Delivery[];
}

/** The recognition service under a virtual clock: runs, corrections, late entries, processing again, failures. */
export class SimulatedService implements FeedService {
  readonly deliveries: Delivery[] = [];
  readonly served: ServedPage[] = [];
  readonly #runs = new Map<string, { revision: number; json: string; readyAt: number }>();
  #lastKey = 0;
  #polls = 0;
  /** Share of requests that fail. */
  faultShare = 0;

  constructor(
    private readonly clock: VirtualClock,
    private readonly choices: Choices,
    private readonly traits: ServiceTraits,
  ) {}

  /** A new run, or another revision of an earlier one. */
  happen(): void {
    const { choices } = this;
    const known = [...this.#runs.keys()];
    const correction = known.length > 0 && choices.chance(0.3);
    const scanId = correction ? choices.pick(known) : `scan-${known.length}`;
    const revision = (this.#runs.get(scanId)?.revision ?? 0) + (correction ? choices.between(1, 2) : 1);
    const behind = (correction && this.traits.corrections === 'behind') || choices.chance(this.traits.lateShare);
    this.#deliver(scanId, revision, behind);
    // At-least-once: the same revision is delivered again.
    const again = this.#runs.get(scanId);
    if (again !== undefined && choices.chance(0.1)) this.#insert(scanId, again.revision, 'again', false);
  }

  async readPage(request: FeedRequest, signal: AbortSignal): Promise<RawPage> {
    await this.#network(signal);
    const from = 'cursor' in request.start ? request.start.cursor : null;
    const since =
      'since' in request.start ? request.start.since.getTime() - this.clock.now() + this.clock.monotonic() : -1;
    const after = from === null ? Math.ceil(since) - 1e-9 : Number(from.split('/')[0]);
    const now = this.clock.monotonic();
    const listed = this.deliveries
      .filter((delivery) => delivery.key > after && delivery.visibleFrom <= now)
      .sort((a, b) => a.key - b.key)
      .slice(0, request.limit);
    this.#polls += 1;
    const place = listed.at(-1)?.key ?? after;
    const next = this.traits.movingCursors ? `${place}/${this.#polls}` : `${place}`;
    this.served.push({ from, next, deliveries: listed });
    return rawPage(
      pageJson(
        listed.map((delivery) => delivery.json),
        next,
      ),
    );
  }

  async readRun(scanId: string, _options: unknown, signal: AbortSignal): Promise<RawRun> {
    await this.#network(signal);
    const run = this.#runs.get(scanId);
    if (run === undefined) throw new ModelTrouble('http_404');
    if (run.readyAt > this.clock.monotonic()) return rawRun(entryJson({ scanId, status: 'processing', data: null }));
    return rawRun(run.json);
  }

  /** The highest usable revision of each scan: what a sweep must have found in the end. */
  newest(): ReadonlyMap<string, number> {
    return highestRevisions(this.deliveries);
  }

  /** The same of deliveries that a cursor cannot have passed by. */
  newestAhead(): ReadonlyMap<string, number> {
    return highestRevisions(this.deliveries.filter((delivery) => !delivery.behind));
  }

  async #network(signal: AbortSignal): Promise<void> {
    const { clock, choices } = this;
    await clock.sleep(choices.between(1, 200), signal);
    signal.throwIfAborted();
    if (!choices.chance(this.faultShare)) return;
    const kind = choices.pick(['http_500', 'http_429', 'timeout', 'not_json', 'http_401', 'cut_body']);
    if (kind === 'timeout') await clock.sleep(30_000, signal);
    signal.throwIfAborted();
    throw new ModelTrouble(kind, kind === 'http_401' ? 'hold' : 'retry', kind === 'http_429' ? 5_000 : undefined);
  }

  #deliver(scanId: string, revision: number, behind: boolean): void {
    const { choices } = this;
    const now = this.clock.monotonic();
    const usable = !choices.chance(this.traits.badShare);
    const truncated = usable && choices.chance(this.traits.truncatedShare);
    this.#insert(scanId, revision, usable ? (truncated ? 'truncated' : 'full') : 'bad', behind);
    // Being corrected again while the result is loaded: the single-run endpoint is busy for a while.
    const readyAt = choices.chance(0.1) ? now + choices.between(0, 60_000) : now;
    this.#runs.set(scanId, { revision, json: entryJson({ scanId, revision, data: { revision } }), readyAt });
  }

  #insert(scanId: string, revision: number, kind: 'full' | 'again' | 'truncated' | 'bad', behind: boolean): void {
    const now = this.clock.monotonic();
    const key = this.#placeInSequence(behind);
    const deliveredAt = Math.floor(key);
    const json = entryJson({
      scanId,
      revision,
      deliveredAt: new Date(this.clock.now() - now + deliveredAt).toISOString(),
      data: { revision },
      ...(kind === 'truncated' && { data: undefined, resultTruncated: true }),
      ...(kind === 'bad' && { status: 'archived' }),
    });
    const visibleFrom = behind ? now + this.choices.between(0, 60_000) : now;
    this.deliveries.push({ key, scanId, revision, json, deliveredAt, visibleFrom, behind, usable: kind !== 'bad' });
  }

  /** By delivery time; deliveries of the same millisecond follow each other. */
  #placeInSequence(behind: boolean): number {
    if (behind) return this.choices.random() * this.#lastKey;
    this.#lastKey = Math.max(this.#lastKey + 1e-6, this.clock.monotonic());
    return this.#lastKey;
  }
}

function highestRevisions(deliveries: readonly Delivery[]): ReadonlyMap<string, number> {
  const highest = new Map<string, number>();
  for (const { scanId, revision, usable } of deliveries) {
    if (usable) highest.set(scanId, Math.max(revision, highest.get(scanId) ?? 0));
  }
  return highest;
}
