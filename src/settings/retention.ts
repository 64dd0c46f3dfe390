import { z } from 'zod';
import type { Kind } from './kinds.js';

const TABLES = ['runs', 'run_history', 'quarantine'] as const;
const MAX_DAYS = 36_500;

/** Retention of each table, days; null: unlimited. */
export type Retention = Readonly<Record<(typeof TABLES)[number], number | null>>;

/** `730` for all tables, or by table: `runs=730,run_history=90`. Tables that are not named have no limit. */
export const retention: Kind<Retention> = z
  .string()
  .transform((text, context) => {
    const days = daysOf(text);
    if (text === 'off' || days !== null) return { runs: days, run_history: days, quarantine: days };
    const kept = byTable(text);
    if (kept !== null) return kept;
    context.addIssue({ code: 'custom', message: '', input: text });
    return z.NEVER;
  })
  .describe(
    `off, a number of days from 1 to ${MAX_DAYS}, or one for each of ${TABLES.join(', ')}, such as runs=730,run_history=90`,
  );

function byTable(text: string): Retention | null {
  const kept: Record<keyof Retention, number | null> = { runs: null, run_history: null, quarantine: null };
  for (const part of text.split(',')) {
    const [name, value = '', ...more] = part.split('=').map((each) => each.trim());
    const table = TABLES.find((known) => known === name);
    const days = daysOf(value);
    if (table === undefined || days === null || more.length > 0 || kept[table] !== null) return null;
    kept[table] = days;
  }
  return kept;
}

function daysOf(text: string): number | null {
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return days >= 1 && days <= MAX_DAYS ? days : null;
}
