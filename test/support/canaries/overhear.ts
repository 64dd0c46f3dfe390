import { inspect } from 'node:util';
import { findCanary, findExposed } from './canary.js';

/** What was overheard that should not have been said, since it was last taken. */
const exposures: string[] = [];
/** Errors that were listened to: a simulation throws the same ones again and again. */
const heard = new WeakSet<object>();

/**
 * Everything that the program says in tests passes here: lines of the log, metrics, pages, output of commands, messages
 * of errors. What shows a key, a password or document content fails the test that runs, whatever that test is about.
 * @param where it was said, for the message
 * @param secrets more that must not be shown, by their names
 */
export function overhear(where: string, text: string, secrets: Readonly<Record<string, string>> = {}): void {
  for (const name of findExposed(text, secrets)) exposures.push(`${where}: the ${name}`);
  const found = findCanary(text);
  if (found !== null) exposures.push(`${where}: …${found.replaceAll('\n', '⏎')}…`);
}

/** An error with everything that a careless log line could show of it. */
export function overhearError(where: string, error: unknown): void {
  if (typeof error === 'object' && error !== null) {
    if (heard.has(error)) return;
    heard.add(error);
  }
  overhear(where, everythingOf(error));
}

export function everythingOf(error: unknown): string {
  const all = { showHidden: true, depth: 20, getters: true } as const;
  return [String(error), JSON.stringify(error), inspect(error, all), (error as Error | null)?.stack].join('\n');
}

/** What was exposed since this was last asked, and forgets it. */
export function takeExposures(): string[] {
  return exposures.splice(0);
}
