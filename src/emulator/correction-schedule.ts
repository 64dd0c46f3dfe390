/** When corrections are due at a rate. Nothing waits: the schedule is asked when a request comes in. */

/** After a long silence only this many are made up for at once. */
const mostAtOnce = 10_000;

export interface CorrectionEvent {
  readonly at: number;
  /** Counts the events, for drawing. */
  readonly number: number;
}

export class CorrectionSchedule {
  #perMinute: number;
  #startMs: number;
  #done = 0;
  #number = 0;

  constructor(perMinute: number, startMs: number) {
    this.#perMinute = perMinute;
    this.#startMs = startMs;
  }

  restart(perMinute: number, nowMs: number): void {
    this.#perMinute = perMinute;
    this.#startMs = nowMs;
    this.#done = 0;
  }

  /** The events up to now that were not handed out before, in order. */
  due(nowMs: number): CorrectionEvent[] {
    if (this.#perMinute === 0) return [];
    const total = Math.floor(((nowMs - this.#startMs) * this.#perMinute) / 60_000);
    const from = Math.max(this.#done, total - mostAtOnce);
    const events: CorrectionEvent[] = [];
    for (let i = from; i < total; i++) {
      events.push({ at: Math.floor(this.#startMs + ((i + 1) * 60_000) / this.#perMinute), number: this.draw() });
    }
    this.#done = Math.max(this.#done, total);
    return events;
  }

  /** A number for a correction outside the schedule. */
  draw(): number {
    return this.#number++;
  }
}
