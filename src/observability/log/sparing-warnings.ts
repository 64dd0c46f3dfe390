import type { Clock } from '../../core/clock.js';
import type { LogFields, Logger } from './logger.js';

/** The same warning is written this often at most. */
const PERIOD_MS = 60_000;

interface Warning {
  toldAt: number;
  kept: Record<string, number> | null;
  fields: LogFields;
}

/** Warnings that any page may give rise to: the first at once, then one a minute with what came together. No timer. */
export function createSparingWarnings(logger: Pick<Logger, 'warn'>, { monotonic }: Pick<Clock, 'monotonic'>) {
  const warnings = new Map<string, Warning>();
  const tell = (message: string, warning: Warning) => {
    logger.warn(message, { ...warning.kept, ...warning.fields });
    Object.assign(warning, { toldAt: monotonic(), kept: null });
  };
  const isDue = (warning: Warning) => monotonic() - warning.toldAt >= PERIOD_MS;
  const tellKept = (which: (warning: Warning) => boolean) => {
    for (const [message, warning] of warnings) if (warning.kept !== null && which(warning)) tell(message, warning);
  };
  return {
    /** @param counts added up until they are told */
    warn(message: string, counts: Readonly<Record<string, number>>, fields: LogFields = {}): void {
      const warning = warnings.get(message) ?? { toldAt: Number.NEGATIVE_INFINITY, kept: null, fields };
      warnings.set(message, warning);
      const kept = warning.kept ?? {};
      for (const [name, count] of Object.entries(counts)) kept[name] = (kept[name] ?? 0) + count;
      Object.assign(warning, { kept, fields });
      if (isDue(warning)) tell(message, warning);
    },
    /** Called often: writes what was kept back for long enough. */
    passed: () => tellKept(isDue),
    /** Writes what was kept back, where nothing more will come. */
    over: () => tellKept(() => true),
  };
}
