/** Difference of clocks that is ignored, milliseconds: `Date` has whole seconds, and an answer takes a moment to arrive. */
const TOLERANCE_MS = 2_000;
/** Maximum part of the service's time that the header may have lost, milliseconds. */
const LOST_FRACTION_MS = 999;

/** Whether the `Date` header shows a clock that differs from ours. */
export function isServiceClockOff(serviceDate: Date | null, wallClockNow: number): serviceDate is Date {
  return serviceDate !== null && Math.abs(serviceDate.getTime() - wallClockNow) > TOLERANCE_MS;
}

/** Monotonic times at which an answer was requested and received, the wall clock then, and its `Date` header. */
export interface AnswerTimes {
  readonly polledAt: number;
  readonly receivedAt: number;
  readonly wallClock: number;
  readonly serviceDate: Date | null;
}

/**
 * The monotonic time of what the service dated `then`, never too late: freshness rests on it. By the `Date` header, where
 * sent, which was set after the poll was sent (the way back may be long); by our own clock where that shows no other. Pure.
 */
export function instantOf(then: Date, { polledAt, receivedAt, wallClock, serviceDate }: AnswerTimes): number {
  const byOwnClock = receivedAt - (wallClock - then.getTime());
  if (serviceDate === null) return Math.min(polledAt, byOwnClock);
  const byHeader = polledAt - (serviceDate.getTime() + LOST_FRACTION_MS - then.getTime());
  return Math.min(polledAt, byHeader, isServiceClockOff(serviceDate, wallClock) ? byHeader : byOwnClock);
}

/** Whether a delivery time may have passed by the service's clock: a time in the future proves nothing. Pure. */
export function isBelievable(then: Date, { wallClock, serviceDate }: AnswerTimes): boolean {
  const now = isServiceClockOff(serviceDate, wallClock) ? serviceDate.getTime() + LOST_FRACTION_MS : wallClock;
  return then.getTime() <= now + TOLERANCE_MS;
}
