import { bodyTooLargeError } from '../../src/service/errors/body-errors.js';
import type { BodyBounds, FeedRequest, FeedService, FeedStart, RawPage, RawRun } from '../../src/sync/ports/index.js';
import { type Fields, pageJson } from '../support/entries.js';
import { rawPage, rawRun } from '../support/pages.js';
import type { VirtualClock } from '../support/virtual-clock.js';
import type { Coverage } from './coverage.js';
import { CursorBook, type CursorMode, isBoundTo, positionOf } from './cursor-book.js';
import { type Delivery, deliver, isListed, type Shape, type Version } from './delivery.js';
import type { Choices } from './random-choices.js';
import { RecognizedRuns } from './recognized-runs.js';
import { maybeRejection, REQUEST_TIMEOUT_MS, refusal, rejection, requestFailure, timeout } from './request-failures.js';
import { Sequence } from './sequence.js';
import type { ServiceTraits } from './traits.js';

/** A served page, to which commits are compared. */
export interface ServedPage {
  readonly from: string | null;
  readonly next: string | null;
  readonly deliveries: readonly Delivery[];
}

/** Temporary faults of the service. */
export interface ServiceState {
  readonly cursors: CursorMode;
  /** Whether it answers no request. */
  readonly unavailable: boolean;
  /** Whether it refuses every feed request, with or without a cursor. */
  readonly refusing: boolean;
}

/** Maximum time between submission and delivery. */
const MOST_PROCESSING_MS = 4 * 86_400_000;

export const HEALTHY: ServiceState = { cursors: 'ordinary', unavailable: false, refusing: false };

/** The recognition service under a virtual clock: runs, corrections, late entries, repeated deliveries and failures. */
export class SimulatedService implements FeedService {
  readonly sequence = new Sequence();
  readonly runs: RecognizedRuns;
  readonly cursors: CursorBook;
  /** Cursors that were ever answered with an error that may mean a rejection. */
  readonly refused = new Set<string>();
  /** Scan ids of the requests to the single-run endpoint. */
  readonly downloads: string[] = [];
  state: ServiceState = HEALTHY;
  /** Probability that a request fails. */
  faultShare = 0;
  /** Number of deliveries that are still due. */
  dueDeliveries = 0;
  /** Virtual time until which a request may be answered late or not at all. */
  disturbedUntil = 0;
  onDelivery: (delivery: Delivery) => void = () => {};
  /** Served pages by the cursor of their request. */
  readonly #served = new Map<string | null, ServedPage[]>();

  /** @param feed name of the feed of its organization, which begins the scan ids */
  constructor(
    private readonly feed: string,
    private readonly clock: VirtualClock,
    private readonly choices: Choices,
    private readonly traits: ServiceTraits,
    private readonly markdown: boolean,
    private readonly coverage: Coverage,
  ) {
    this.runs = new RecognizedRuns(traits.sparseAnswers);
    this.cursors = new CursorBook(traits.movingCursors);
  }

  /** Delivers a new run or another revision of an earlier one. */
  addRevision(): void {
    const { choices, traits, runs } = this;
    const now = this.clock.monotonic();
    const before = choices.chance(0.3) ? runs.newest(choices.pick(runs.scanIds)) : undefined;
    const version: Version = {
      feed: this.feed,
      scanId: before?.scanId ?? `${this.feed}-${runs.scanIds.length}`,
      revision: (before?.revision ?? 0) + (before === undefined ? 1 : choices.between(1, 2)),
      status: choices.chance(0.1) ? 'failed' : 'completed',
      environment: before?.environment ?? (choices.chance(traits.testShare) ? 'test' : 'prod'),
      earlierTime: before?.earlierTime ?? now - choices.between(0, choices.pick([0, 60_000, MOST_PROCESSING_MS])),
      poisonous: choices.chance(traits.badShare / 2),
      bare: choices.chance(traits.truncatedShare / 2),
      omitsTestMode: choices.chance(traits.noTestModeShare),
    };
    if (before !== undefined) this.coverage.corrections += 1;
    const late = choices.chance(traits.lateShare);
    const where =
      before !== undefined && traits.corrections !== 'ahead' ? traits.corrections : late ? 'behind' : 'ahead';
    // Feed and single-run endpoint may show a revision at different times.
    const skew = choices.chance(0.2) ? choices.between(0, 20_000) : 0;
    const feedLate = choices.chance(0.5);
    runs.show(version, feedLate ? now : now + skew, choices);
    const deliverIt = () => {
      this.#insert(version, this.#shapeOf(version), where);
      // Delivery is at least once: the same revision may be delivered again.
      if (choices.chance(0.1)) this.#insert(version, this.#shapeAgain(version), 'ahead');
    };
    if (feedLate && skew > 0) void this.#later(skew, deliverIt);
    else deliverIt();
  }

  async #later(ms: number, action: () => void): Promise<void> {
    this.dueDeliveries += 1;
    await this.clock.pause(ms);
    this.dueDeliveries -= 1;
    action();
  }

  async readPage(request: FeedRequest & Partial<BodyBounds>, signal: AbortSignal): Promise<RawPage> {
    const { start } = request;
    await this.#network('feed', signal).catch((error) => this.#fails(error, start));
    const known = !('cursor' in start) || this.cursors.knows(start.cursor);
    if (this.state.refusing) this.#fails(refusal('feed', 400), start);
    if (!known) this.#fails(rejection(start.cursor), start);
    const { clock, traits, sequence } = this;
    const filters = traits.boundCursors ? JSON.stringify(request.filters) : '';
    if ('cursor' in start && !isBoundTo(start.cursor, filters)) throw refusal('feed', 400);
    const scanned = this.#isCut(start) ? request.limit * traits.scanFactor : Number.POSITIVE_INFINITY;
    const isLeftOut = (delivery: Delivery) =>
      traits.sinceReading === 'filter' && 'since' in start && !this.isOfTime(delivery, start.since);
    const isWanted = (delivery: Delivery) => isListed(delivery, request.filters) && !isLeftOut(delivery);
    const slice = sequence.after(this.positionOf(start), clock.monotonic(), isWanted, request.limit, scanned);
    const from = 'cursor' in start ? start.cursor : null;
    const next = this.#nextCursor(from, slice.upTo, filters);
    this.#remember({ from, next, deliveries: slice.listed });
    const serviceDate = traits.sendsDate ? new Date(Math.floor(this.#serviceTime() / 1000) * 1000) : null;
    const listed = traits.deliveryClock === 'answer' ? slice.listed.map((entry) => this.#stamped(entry)) : slice.listed;
    const body = Buffer.from(
      pageJson(
        listed.map(({ json }) => json),
        next,
      ),
    );
    await this.#transit(body, request, signal);
    const items = listed.map((delivery) => delivery.item);
    return { ...rawPage(body, serviceDate), items, nextCursor: next };
  }

  async readRun(
    scanId: string,
    options: { readonly markdown: boolean } & Partial<BodyBounds>,
    signal: AbortSignal,
  ): Promise<RawRun> {
    this.downloads.push(scanId);
    this.coverage.downloads += 1;
    await this.#network('run', signal);
    const json = this.runs.answer(scanId, this.clock.monotonic(), options.markdown);
    await this.#transit(Buffer.from(json ?? ''), options, signal);
    if (json === null) throw refusal('run', 404);
    return rawRun(json);
  }

  /** Yields the deliveries of each path from one cursor to another over at most `pages` pages. Late runs make paths differ. */
  *paths(from: string | null, to: string | null, pages: number): Generator<readonly Delivery[]> {
    const served = this.#served.get(from) ?? [];
    for (const page of served) if (page.next === to) yield page.deliveries;
    if (pages === 1) return;
    for (const { next, deliveries } of served) {
      for (const rest of this.paths(next, to, pages - 1)) yield [...deliveries, ...rest];
    }
  }

  #remember(page: ServedPage): void {
    const others = this.#served.get(page.from);
    if (others === undefined) this.#served.set(page.from, [page]);
    else others.push(page);
  }

  /** Returns the position after which a page begins. */
  positionOf(start: FeedStart): number {
    if ('cursor' in start) return positionOf(start.cursor);
    if ('beginning' in start) return -1;
    const position = this.#positionOfTime(start.since);
    if (this.traits.sinceReading === 'filter') return position;
    return this.sequence.positionBefore(position, this.clock.monotonic(), (delivery) =>
      this.isOfTime(delivery, start.since),
    );
  }

  /** Returns the position directly before the first delivery at or after a time. */
  #positionOfTime(time: Date): number {
    return time.getTime() - this.#time(0) - 1e-9;
  }

  /** Returns whether a request with this `since` lists a delivery, with the service's meaning of `since`. */
  isOfTime({ key, earlierTime }: Delivery, since: Date): boolean {
    const position = this.#positionOfTime(since);
    return key > position && (this.traits.sinceMeaning === 'delivered' || earlierTime > position);
  }

  /** Like `isOfTime`, for a position that may have no time. */
  isPromised(delivery: Delivery, since: Date | null): boolean {
    return since === null || this.isOfTime(delivery, since);
  }

  /** Returns whether a delivery is dated at or before a time. */
  isUpTo({ dated }: Delivery, time: Date): boolean {
    return dated <= this.#positionOfTime(time);
  }

  /** Returns the virtual time at which a delivery is dated. */
  deliveredAt({ key }: Delivery): number {
    return Math.floor(key);
  }

  /** Returns the time of the service's `Date` header. */
  #serviceTime(): number {
    return this.clock.now() + this.traits.clockAheadMs;
  }

  /** Converts a monotonic time to the clock that sets delivery times. */
  #time(monotonic: number): number {
    const { deliveryClock } = this.traits;
    const aheadMs = deliveryClock === 'answer' ? 0 : deliveryClock;
    return this.#serviceTime() - this.clock.monotonic() + monotonic + aheadMs;
  }

  /** Returns a delivery as a response lists it that sets the delivery times. */
  #stamped({ item }: Delivery): Pick<Delivery, 'json' | 'item'> {
    const fields = { ...(item as Fields), deliveredAt: new Date(this.#time(this.clock.monotonic())).toISOString() };
    return { json: JSON.stringify(fields), item: fields };
  }

  #nextCursor(from: string | null, position: number, filters: string): string | null {
    const mode = this.state.cursors;
    if (mode === 'empty' || (this.traits.noCursorAtEnd && this.sequence.isEnd(position, this.clock.monotonic())))
      return null;
    if (mode === 'stalled') return from;
    return (
      (mode === 'circling' ? this.cursors.earlier(this.choices.random(), position, filters) : null) ??
      this.cursors.issue(position, filters)
    );
  }

  /**
   * Returns whether a page may be shorter than its limit before the end. A page without a cursor that `since` has shortened
   * counts as the end once it repeats, and one of a service whose clocks differ dates the next entries (guarantee 10).
   */
  #isCut(start: FeedStart): boolean {
    if (this.state.cursors === 'empty' && this.traits.deliveryClock !== 0) return false;
    if (this.state.cursors === 'empty') return !('since' in start) || this.traits.sinceReading === 'position';
    return this.state.cursors === 'ordinary';
  }

  #fails(error: unknown, start: FeedStart): never {
    if ('cursor' in start && maybeRejection(error)) this.refused.add(start.cursor);
    throw error;
  }

  /** Transmits a request, which may fail. */
  async #network(operation: 'feed' | 'run', signal: AbortSignal): Promise<void> {
    const { clock, choices } = this;
    await clock.sleep(choices.between(1, 100), signal);
    signal.throwIfAborted();
    if (!this.state.unavailable && !choices.chance(this.faultShare)) return;
    this.coverage['failed requests'] += 1;
    if (choices.chance(0.8)) throw requestFailure(operation, choices);
    await clock.sleep(this.#recordDisturbance(REQUEST_TIMEOUT_MS), signal);
    signal.throwIfAborted();
    throw timeout();
  }

  /** Transmits a response, which takes time. */
  async #transit(body: Buffer, { maxBytes, reserve }: Partial<BodyBounds>, signal: AbortSignal): Promise<void> {
    if (body.length > (maxBytes ?? Number.POSITIVE_INFINITY)) throw bodyTooLargeError(maxBytes);
    // The size is reported at the beginning or at the end.
    const announced = this.choices.chance(0.5);
    if (announced) await reserve?.(body.length);
    const slow = this.choices.chance(this.faultShare / 4);
    if (slow) await this.clock.sleep(this.#recordDisturbance(this.choices.between(1_000, 25_000)), signal);
    // A short response may need another packet.
    else if (this.choices.chance(0.5)) await this.clock.sleep(this.choices.between(1, 100), signal);
    if (!announced) await reserve?.(body.length);
    signal.throwIfAborted();
  }

  #recordDisturbance(ms: number): number {
    this.disturbedUntil = Math.max(this.disturbedUntil, this.clock.monotonic() + ms);
    return ms;
  }

  #shapeOf({ status, bare }: Version): Shape {
    const { choices, traits } = this;
    // Only the single-run endpoint can show that there is no markdown, however often the entry is delivered.
    if (bare && this.markdown) return choices.pick(['truncated', 'truncated_data', 'truncated_markdown'] as const);
    if (choices.chance(traits.badShare)) return choices.pick(['bad_status', 'no_scan_id', 'repairable'] as const);
    if (!choices.chance(traits.truncatedShare)) return 'full';
    // A failed run has no data that could be too large.
    if (status === 'failed') return this.markdown ? 'truncated_markdown' : 'full';
    return this.markdown ? choices.pick(['truncated', 'truncated_data', 'truncated_markdown'] as const) : 'truncated';
  }

  #shapeAgain(version: Version): Shape {
    return !version.bare && this.choices.chance(this.traits.conflictShare) ? 'other_content' : this.#shapeOf(version);
  }

  #insert(version: Version, shape: Shape, where: ServiceTraits['corrections']): void {
    const { choices, sequence } = this;
    const now = this.clock.monotonic();
    const old = where === 'in place' ? sequence.again(version.scanId, choices.random()) : null;
    const behind = where === 'behind' || old !== null;
    const key = old ?? (behind ? sequence.before(choices.random()) : sequence.end(now));
    const visibleFrom = behind && old === null ? now + choices.between(0, 60_000) : now;
    const dated = Math.floor(old === null ? key : now);
    const position = { key, dated, visibleFrom, behind };
    const delivery = deliver(version, shape, this.markdown, new Date(this.#time(dated)), position);
    sequence.insert(delivery);
    this.#count(delivery, shape);
    this.onDelivery(delivery);
  }

  #count({ behind, usable }: Delivery, shape: Shape): void {
    const { coverage } = this;
    coverage.deliveries += 1;
    if (behind) coverage['late deliveries'] += 1;
    if (!usable) coverage['unusable deliveries'] += 1;
    if (shape.startsWith('truncated')) coverage['truncated deliveries'] += 1;
  }
}
