import type { Clock } from '../../core/clock.js';
import type { LogFields, Logger } from './logger.js';

/** Minimum time between two lines with the same message, milliseconds. */
const PERIOD_MS = 60_000;

type Counts = Readonly<Record<string, number>>;

interface Line {
  readonly level: 'info' | 'warn';
  readonly loggedAt: number;
  /** Sums since the last line, or null. */
  readonly counts: Counts | null;
  readonly fields: () => LogFields;
}

/**
 * Logs what any page may cause: the first line immediately, then at most one per minute with the sums of its counts. It has no timer:
 * each call checks the time.
 */
export function createThrottledLines(logger: Logger, { monotonic }: Clock) {
  const lines = new Map<string, Line>();
  const log = (message: string, line: Line) => {
    if (line.counts === null) return;
    logger[line.level](message, { ...line.counts, ...line.fields() });
    lines.set(message, { ...line, loggedAt: monotonic(), counts: null });
  };
  const logIfDue = (message: string, line: Line) => {
    if (monotonic() - line.loggedAt >= PERIOD_MS) log(message, line);
  };
  return {
    /** @param fields further fields, read when a line is logged */
    add(level: Line['level'], message: string, counts: Counts, fields: Line['fields']): void {
      const { loggedAt = Number.NEGATIVE_INFINITY, counts: sums } = lines.get(message) ?? {};
      const line = { level, loggedAt, counts: added(sums ?? {}, counts), fields };
      lines.set(message, line);
      logIfDue(message, line);
    },
    /** Logs the lines that are due. */
    tick(): void {
      for (const [message, line] of lines) logIfDue(message, line);
    },
    /** Logs all counts since the last lines. */
    flush(): void {
      for (const [message, line] of lines) log(message, line);
    },
  };
}

function added(sums: Counts, counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, (sums[name] ?? 0) + count]));
}
