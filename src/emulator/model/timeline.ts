import { draw, hash } from './random.js';
import type { Switches } from './switches.js';

/**
 * When the generated runs are delivered. Run n's time is computed, not stored: the history and each period of a
 * constant rate are stretches of evenly spaced runs, each run shifted within its own slot.
 */

/** Switches that shape newly generated runs. A run keeps the values with which it was generated. */
export const STRETCH_SWITCHES = [
  'failureShare',
  'testEnvironmentShare',
  'lateShare',
  'lateByMs',
  'processingMs',
] as const;
type StretchShares = Pick<Switches, (typeof STRETCH_SWITCHES)[number]>;

interface Stretch {
  readonly first: number;
  readonly startMs: number;
  readonly intervalMs: number;
  readonly shares: StretchShares;
  /** Runs in it; Infinity while it is open. */
  count: number;
}

const purpose = { shift: 21, late: 22, processing: 23 };

export class Timeline {
  readonly #stretches: Stretch[] = [];

  constructor(readonly seed: number) {}

  /** Adds `count` past runs, spread over the `periodMs` before `endMs`. */
  addHistory(count: number, periodMs: number, endMs: number, shares: StretchShares): void {
    if (count === 0) return;
    this.#push({
      first: 0,
      startMs: endMs - periodMs,
      intervalMs: periodMs / count,
      shares: { ...shares, lateShare: 0 },
      count,
    });
  }

  /** From `nowMs` on, `perSecond` new runs appear with these shares; 0 ends it. Runs before keep theirs. */
  setRate(perSecond: number, nowMs: number, shares: StretchShares): void {
    const last = this.#stretches.at(-1);
    if (last !== undefined && last.count === Infinity) last.count = this.countAt(nowMs) - last.first;
    const first = this.total();
    if (perSecond > 0) this.#push({ first, startMs: nowMs, intervalMs: 1000 / perSecond, shares, count: Infinity });
  }

  /** Runs of closed stretches; the number of the next run. */
  total(): number {
    const last = this.#stretches.at(-1);
    if (last === undefined) return 0;
    return last.count === Infinity ? last.first : last.first + last.count;
  }

  /** How many runs have a delivery time up to `nowMs`. */
  countAt(nowMs: number): number {
    const last = this.#stretches.at(-1);
    if (last === undefined) return 0;
    const most =
      last.count === Infinity ? Math.max(0, Math.ceil((nowMs - last.startMs) / last.intervalMs) + 1) : last.count;
    return this.#search(last.first + most, (number) => this.deliveredAt(number) > nowMs);
  }

  /** Number of the first run, among the first `count`, that lies after the place (`at`, `order`). */
  firstAfter(at: number, order: number, count: number): number {
    return this.#search(count, (number) => {
      const t = this.deliveredAt(number);
      return t > at || (t === at && number > order);
    });
  }

  /** Never decreases with the number, and lies after the stretch's start: a new stretch adds nothing to a past that was read. */
  deliveredAt(number: number): number {
    const stretch = this.#stretchOf(number);
    const slot = number - stretch.first + draw(this.seed, number, purpose.shift);
    return Math.floor(stretch.startMs + slot * stretch.intervalMs) + 1;
  }

  run(number: number) {
    const { shares } = this.#stretchOf(number);
    const deliveredAt = this.deliveredAt(number);
    const late = draw(this.seed, number, purpose.late) < shares.lateShare;
    const processing = Math.round(shares.processingMs * (0.5 + draw(this.seed, number, purpose.processing)));
    return {
      submittedAt: deliveredAt - processing,
      deliveredAt,
      /** When the feed shows it; later than `deliveredAt` for late runs. */
      visibleAt: late ? deliveredAt + shares.lateByMs : deliveredAt,
      shares,
    };
  }

  /** Whether a run of this number exists or may come to exist at the present rate. */
  has(number: number): boolean {
    const last = this.#stretches.at(-1);
    return last !== undefined && number < last.first + last.count;
  }

  /** A pseudo-random number for choosing among the first `count` runs, the latest preferred. */
  recent(count: number, event: number): number {
    const u = hash(this.seed, event, 24) / 0x1_0000_0000;
    return count - 1 - Math.floor(u ** 3 * count);
  }

  #push(stretch: Stretch): void {
    const last = this.#stretches.at(-1);
    if (last?.count === 0) this.#stretches.pop();
    this.#stretches.push(stretch);
  }

  #stretchOf(number: number): Stretch {
    for (let i = this.#stretches.length - 1; i > 0; i--) {
      const stretch = this.#stretches[i] as Stretch;
      if (number >= stretch.first) return stretch;
    }
    return this.#stretches[0] as Stretch;
  }

  /** Smallest number below `end` for which `after` holds, else `end`. `after` never goes back to false. */
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
