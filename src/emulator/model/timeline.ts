import { draw, hash } from './random.js';
import type { Switches } from './switch-types.js';

/**
 * The delivery times of the generated runs. They are computed, not stored: the history and each period of a constant rate are
 * periods of evenly spaced runs, each shifted randomly within its own slot.
 */

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

export class Timeline {
  readonly #periods: Period[] = [];

  constructor(readonly seed: number) {}

  /** Adds `count` past runs, spread over the `periodMs` before `endMs`. */
  addHistory(count: number, periodMs: number, endMs: number, shares: PeriodShares): void {
    if (count === 0) return;
    this.#push({
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
    if (last !== undefined && last.count === Infinity) last.count = this.countAt(nowMs) - last.first;
    const first = this.total();
    if (perSecond > 0) this.#push({ first, startMs: nowMs, intervalMs: 1000 / perSecond, shares, count: Infinity });
  }

  /** Returns the number of runs in closed periods, which is the number of the next run. */
  total(): number {
    const last = this.#periods.at(-1);
    if (last === undefined) return 0;
    return last.count === Infinity ? last.first : last.first + last.count;
  }

  /** Returns the number of runs with a delivery time up to `nowMs`. */
  countAt(nowMs: number): number {
    const last = this.#periods.at(-1);
    if (last === undefined) return 0;
    const most =
      last.count === Infinity ? Math.max(0, Math.ceil((nowMs - last.startMs) / last.intervalMs) + 1) : last.count;
    return this.#search(last.first + most, (number) => this.deliveredAt(number) > nowMs);
  }

  /** Returns the number of the first run, among the first `count`, after the place (`at`, `order`). */
  firstAfter(at: number, order: number, count: number): number {
    return this.#search(count, (number) => {
      const t = this.deliveredAt(number);
      return t > at || (t === at && number > order);
    });
  }

  /**
   * Returns a time that never decreases with the number and is after the start of its period: a new period never changes the past.
   */
  deliveredAt(number: number): number {
    const period = this.#periodOf(number);
    const slot = number - period.first + draw(this.seed, number, purpose.shift);
    return Math.floor(period.startMs + slot * period.intervalMs) + 1;
  }

  run(number: number) {
    const { shares } = this.#periodOf(number);
    const deliveredAt = this.deliveredAt(number);
    const late = draw(this.seed, number, purpose.late) < shares.lateShare;
    const processing = Math.round(shares.processingMs * (0.5 + draw(this.seed, number, purpose.processing)));
    return {
      submittedAt: deliveredAt - processing,
      deliveredAt,
      /** Time at which it becomes visible; later than `deliveredAt` for late runs. */
      visibleAt: late ? deliveredAt + shares.lateByMs : deliveredAt,
      shares,
    };
  }

  /** Returns whether a run of this number exists or will exist at the current rate. */
  has(number: number): boolean {
    const last = this.#periods.at(-1);
    return last !== undefined && number < last.first + last.count;
  }

  /** Returns a random run among the first `count`, preferring the latest. */
  recent(count: number, event: number): number {
    const u = hash(this.seed, event, 24) / 0x1_0000_0000;
    return count - 1 - Math.floor(u ** 3 * count);
  }

  #push(period: Period): void {
    const last = this.#periods.at(-1);
    if (last?.count === 0) this.#periods.pop();
    this.#periods.push(period);
  }

  #periodOf(number: number): Period {
    for (let i = this.#periods.length - 1; i > 0; i--) {
      const period = this.#periods[i] as Period;
      if (number >= period.first) return period;
    }
    return this.#periods[0] as Period;
  }

  /** Returns the smallest number below `end` for which `after` is true, else `end`. `after` must be monotonic. */
  #search(end: number, after: (number: number) => boolean): number {
    let low = 0;
    let high = end;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (after(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
