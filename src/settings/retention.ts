import { z } from 'zod';
import type { Kind } from './kinds.js';

/** Days that things are kept; null: for ever. */
export interface Retention {
  readonly runs: number | null;
  readonly runHistory: number | null;
  readonly quarantine: number | null;
}

const NAMES = { runs: 'runs', run_history: 'runHistory', quarantine: 'quarantine' } as const;
const MOST_DAYS = 36_500;
const OFF: Retention = { runs: null, runHistory: null, quarantine: null };

/** `730` for everything, or by kind: `runs=730,run_history=90`. What is not named is kept. */
export const retention: Kind<Retention> = {
  allowed: `off, a number of days from 1 to ${MOST_DAYS}, or one for each of ${Object.keys(NAMES).join(', ')}, such as runs=730,run_history=90`,
  schema: z.string().transform((text, context) => {
    const kept = text === 'off' ? OFF : (sameForAll(text) ?? byKind(text));
    if (kept !== null) return kept;
    context.addIssue({ code: 'custom', message: '', input: text });
    return z.NEVER;
  }),
};

function sameForAll(text: string): Retention | null {
  const days = daysOf(text);
  return days === null ? null : { runs: days, runHistory: days, quarantine: days };
}

function byKind(text: string): Retention | null {
  const kept: Record<keyof Retention, number | null> = { ...OFF };
  for (const part of text.split(',')) {
    const [name = '', value = '', ...more] = part.split('=').map((each) => each.trim());
    const days = daysOf(value);
    if (!Object.hasOwn(NAMES, name) || days === null || more.length > 0) return null;
    const kind = NAMES[name as keyof typeof NAMES];
    if (kept[kind] !== null) return null;
    kept[kind] = days;
  }
  return kept;
}

function daysOf(text: string): number | null {
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return days >= 1 && days <= MOST_DAYS ? days : null;
}
