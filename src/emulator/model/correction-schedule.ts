/** Maximum number of corrections to make up for after a long silence. */
const MAX_AT_ONCE = 10_000;

/** When corrections are due at a rate. Nothing waits: the schedule is asked when a request comes in. */
export class CorrectionSchedule {
  #done = 0;

  constructor(
    readonly perMinute: number,
    readonly startMs: number,
  ) {}

  /** Returns the times up to now that were not returned before, in order. */
  due(nowMs: number): number[] {
    const total = Math.floor(((nowMs - this.startMs) * this.perMinute) / 60_000);
    const from = Math.max(this.#done, total - MAX_AT_ONCE);
    this.#done = Math.max(this.#done, total);
    const length = Math.max(0, total - from);
    return Array.from({ length }, (_, i) => Math.floor(this.startMs + ((from + i + 1) * 60_000) / this.perMinute));
  }
}
