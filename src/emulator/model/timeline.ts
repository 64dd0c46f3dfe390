import { draw } from './random.js';
import { factsOf, makeVersion, type RunSource, type RunVersion } from './runs.js';
import type { Switches } from './switch-types.js';

/** Switches that shape newly generated runs. A run keeps the values with which it was generated. */
export const PERIOD_SWITCHES = [
  'failureShare',
  'testEnvironmentShare',
  'lateShare',
  'lateByMs',
  'processingMs',
] as const;
type PeriodShares = Pick<Switches, (typeof PERIOD_SWITCHES)[number]>;

interface Period {
  readonly first: number;
  readonly startMs: number;
  readonly intervalMs: number;
  readonly shares: PeriodShares;
  /** Number of runs; Infinity while it is open. */
  count: number;
}

const purpose = { shift: 21, late: 22, processing: 23 };

/**
 * The generated runs with their delivery times. They are computed, not stored: the history and each period of a constant rate are
 * periods of evenly spaced runs, each shifted randomly within its own slot.
 */
export class Timeline {
  /** Corrected runs, and whether their first entry was removed from the sequence. */
  readonly superseded = new Map<number, Switches['superseded']>();
  readonly #periods: Period[] = [];

  constructor(readonly source: RunSource) {}

  /** Adds `count` past runs, spread over the `periodMs` before `endMs`. */
  addHistory(count: number, periodMs: number, endMs: number, shares: PeriodShares): void {
    if (count === 0) return;
    this.#periods.push({
      first: 0,
      startMs: endMs - periodMs,
      intervalMs: periodMs / count,
      shares: { ...shares, lateShare: 0 },
      count,
    });
  }

  /** Starts a rate of new runs with these shares at `nowMs`; 0 ends it. Earlier runs keep their shares. */
  setRate(perSecond: number, nowMs: number, shares: PeriodShares): void {
    const last = this.#periods.at(-1);
    if (last?.count === Infinity) last.count = this.countAt(nowMs) - last.first;
    if (perSecond === 0) return;
    const first = last === undefined ? 0 : last.first + last.count;
    this.#periods.push({ first, startMs: nowMs, intervalMs: 1000 / perSecond, shares, count: Infinity });
  }

  /** Returns the number of runs with a delivery time up to `nowMs`. */
  countAt(nowMs: number): number {
    const last = this.#periods.at(-1);
    if (last === undefined) return 0;
    const most =
      last.count === Infinity ? Math.max(0, Math.ceil((nowMs - last.startMs) / last.intervalMs) + 1) : last.count;
    return search(last.first + most, (number) => this.deliveredAt(number) > nowMs);
  }

  /** Returns the number of the first run, among the first `count`, after this place. */
  firstAfter({ at, order }: { readonly at: number; readonly order: number }, count: number): number {
    return search(count, (number) => {
      const t = this.deliveredAt(number);
      return t > at || (t === at && number > order);
    });
  }

  /**
   * Returns a time that never decreases with the number and is after the start of its period: a new period never changes the past.
   */
  deliveredAt(number: number): number {
    const period = this.#periodOf(number);
    const slot = number - period.first + draw(this.source.seed, number, purpose.shift);
    return Math.floor(period.startMs + slot * period.intervalMs) + 1;
  }

  run(number: number) {
    const { shares } = this.#periodOf(number);
    const deliveredAt = this.deliveredAt(number);
    const late = draw(this.source.seed, number, purpose.late) < shares.lateShare;
    const processing = Math.round(shares.processingMs * (0.5 + draw(this.source.seed, number, purpose.processing)));
    return {
      submittedAt: deliveredAt - processing,
      deliveredAt,
      /** Time at which it becomes visible; later than `deliveredAt` for late runs. */
      visibleAt: late ? deliveredAt + shares.lateByMs : deliveredAt,
      shares,
    };
  }

  /** Returns false while the run is late, or if its entry was removed. */
  isVisible(number: number, nowMs: number): boolean {
    return this.superseded.get(number) !== 'removed' && this.run(number).visibleAt <= nowMs;
  }

  version(number: number): RunVersion {
    const { submittedAt, deliveredAt, shares } = this.run(number);
    const facts = factsOf(this.source, shares, number);
    const times = { submittedAt, completedAt: deliveredAt, deliveredAt };
    return makeVersion(this.source, { number, revision: 1, facts, ...times });
  }

  /** Returns whether a run of this number exists or will exist at the current rate. */
  has(number: number): boolean {
    const last = this.#periods.at(-1);
    return last !== undefined && number < last.first + last.count;
  }

  /** Returns a random run among the first `count`, preferring the latest. */
  recent(count: number, event: number): number {
    const u = draw(this.source.seed, event, 24);
    return count - 1 - Math.floor(u ** 3 * count);
  }

  #periodOf(number: number): Period {
    for (let i = this.#periods.length - 1; i > 0; i--) {
      const period = this.#periods[i] as Period;
      if (number >= period.first) return period;
    }
    return this.#periods[0] as Period;
  }
}

/** Returns the smallest number below `end` for which `after` is true, else `end`. `after` must be monotonic. */
export function search(end: number, after: (number: number) => boolean): number {
  let low = 0;
  let high = end;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (after(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
