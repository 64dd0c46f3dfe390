/** Maximum number of corrections that are caught up on after a long pause. */
const MAX_AT_ONCE = 10_000;

/** Computes when corrections are due at a rate. It has no timer: each request asks the schedule. */
export class CorrectionSchedule {
  #done = 0;

  constructor(
    readonly perMinute: number,
    readonly startMs: number,
  ) {}

  /** Returns the due times since the last call, in order. */
  due(nowMs: number): number[] {
    const total = Math.floor(((nowMs - this.startMs) * this.perMinute) / 60_000);
    const from = Math.max(this.#done, total - MAX_AT_ONCE);
    this.#done = Math.max(this.#done, total);
    const length = Math.max(0, total - from);
    return Array.from({ length }, (_, i) => Math.floor(this.startMs + ((from + i + 1) * 60_000) / this.perMinute));
  }
}
