/** `Date` is cut to whole seconds, and an answer is under way for a moment: within this no difference is assumed. */
const TOLERANCE_MS = 2_000;

/** Whether the `Date` header shows a clock that differs from ours. */
export function isServiceClockOff(serviceDate: Date | null, wallClockNow: number): serviceDate is Date {
  return serviceDate !== null && Math.abs(serviceDate.getTime() - wallClockNow) > TOLERANCE_MS;
}

/**
 * How long ago, in milliseconds, something happened that the service dated `then`. The service's clock is taken from its
 * `Date` header: where it differs from ours the difference is taken out. Never too young: the header's lost fraction of a
 * second counts as age. Pure.
 */
export function ageByServiceClock(then: Date, serviceDate: Date | null, wallClockNow: number): number {
  const now = isServiceClockOff(serviceDate, wallClockNow) ? serviceDate.getTime() + 999 : wallClockNow;
  return Math.max(0, now - then.getTime());
}
