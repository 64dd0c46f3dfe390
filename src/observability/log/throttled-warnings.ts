import type { Clock } from '../../core/clock.js';
import type { LogFields, Logger } from './logger.js';

/** Minimum time between two lines of the same warning, milliseconds. */
const PERIOD_MS = 60_000;

interface Warning {
  loggedAt: number;
  /** Sums since the last line, or null. */
  counts: Record<string, number> | null;
  fields: LogFields;
}

/**
 * Logs warnings that any page may cause: the first one immediately, then at most one per minute with the sums of its counts.
 * It has no timer: each call checks the time.
 */
export function createThrottledWarnings(logger: Logger, { monotonic }: Clock) {
  const warnings = new Map<string, Warning>();
  const log = (message: string, warning: Warning) => {
    if (warning.counts === null) return;
    logger.warn(message, { ...warning.counts, ...warning.fields });
    Object.assign(warning, { loggedAt: monotonic(), counts: null });
  };
  const logIfDue = (message: string, warning: Warning) => {
    if (monotonic() - warning.loggedAt >= PERIOD_MS) log(message, warning);
  };
  return {
    warn(message: string, counts: Readonly<Record<string, number>>, fields: LogFields): void {
      const { loggedAt = Number.NEGATIVE_INFINITY, counts: sums = null } = warnings.get(message) ?? {};
      const warning = { loggedAt, counts: added(sums ?? {}, counts), fields };
      warnings.set(message, warning);
      logIfDue(message, warning);
    },
    /** Logs the warnings that are due. */
    tick(): void {
      for (const [message, warning] of warnings) logIfDue(message, warning);
    },
    /** Logs all counts since the last lines. */
    flush(): void {
      for (const [message, warning] of warnings) log(message, warning);
    },
  };
}

function added(sums: Readonly<Record<string, number>>, counts: Readonly<Record<string, number>>) {
  const names = Object.keys({ ...sums, ...counts });
  return Object.fromEntries(names.map((name) => [name, (sums[name] ?? 0) + (counts[name] ?? 0)]));
}
