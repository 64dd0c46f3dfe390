/** Number of checks of each kind per second above which each schema is checked less often. */
const CHECKS_PER_SECOND = 20;
/** Maximum interval between two checks of a schema, milliseconds. */
const MAX_INTERVAL_MS = 60_000;

/** Returns the time between two checks of a schema, milliseconds. Pure. */
export function checkInterval(minMs: number, schemas: number): number {
  return Math.min(Math.max(minMs, (schemas / CHECKS_PER_SECOND) * 1000), MAX_INTERVAL_MS);
}
