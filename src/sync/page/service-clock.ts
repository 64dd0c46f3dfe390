/** Maximum difference of the clocks that is ignored, milliseconds: `Date` has whole seconds, and a response takes time. */
const TOLERANCE_MS = 2_000;
/** Maximum part of the service's time that rounding to whole seconds cuts off, milliseconds. */
const LOST_FRACTION_MS = 999;

/** Maximum error of the service's time by its `Date` header, or by the local clock if that shows no difference, milliseconds. */
export const SERVICE_TIME_ERROR_MS = TOLERANCE_MS + LOST_FRACTION_MS;

/** Returns whether the service's clock differs from the local one, by its `Date` header. */
export function isServiceClockOff(serviceDate: Date | null, wallClockNow: number): serviceDate is Date {
  return serviceDate !== null && Math.abs(serviceDate.getTime() - wallClockNow) > TOLERANCE_MS;
}

/** Monotonic times at which a response was requested and received, the wall clock at its receipt, and its `Date` header. */
export interface AnswerTimes {
  readonly polledAt: number;
  readonly receivedAt: number;
  readonly wallClock: number;
  readonly serviceDate: Date | null;
}

/**
 * Returns the monotonic time of a time of the service, never too late, since freshness depends on it. It is computed by the
 * `Date` header, which was set after the poll was sent (the response may take long), or by the local clock if there is no
 * header or it shows no difference. Pure.
 */
export function monotonicTimeOf(time: Date, { polledAt, receivedAt, wallClock, serviceDate }: AnswerTimes): number {
  const byOwnClock = receivedAt - (wallClock - time.getTime());
  if (serviceDate === null) return Math.min(polledAt, byOwnClock);
  const byHeader = polledAt - (serviceDate.getTime() + LOST_FRACTION_MS - time.getTime());
  return Math.min(polledAt, byHeader, isServiceClockOff(serviceDate, wallClock) ? byHeader : byOwnClock);
}

/** Returns whether a delivery time is not in the future by the service's clock: a future time proves nothing. Pure. */
export function isPlausible(time: Date, { wallClock, serviceDate }: AnswerTimes): boolean {
  const now = isServiceClockOff(serviceDate, wallClock) ? serviceDate.getTime() + LOST_FRACTION_MS : wallClock;
  return time.getTime() <= now + TOLERANCE_MS;
}

/** How far ahead of this process's clock a delivery time must be to be certainly wrong, milliseconds. */
const CERTAINLY_WRONG_MS = 24 * 3_600_000;

/** Returns a delivery time; null if it is ahead of any clock, which says nothing about the entry. Pure. */
export function possibleDelivery(deliveredAt: Date | null, wallClock: number): Date | null {
  return deliveredAt !== null && deliveredAt.getTime() <= wallClock + CERTAINLY_WRONG_MS ? deliveredAt : null;
}
