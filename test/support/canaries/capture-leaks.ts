import { inspect } from 'node:util';
import { findCanary, findExposed } from './canary.js';

/** Leaks since they were last taken. */
const leaks: string[] = [];
/** Errors that have been checked. A simulation throws the same ones many times. */
const checked = new WeakSet<object>();

/**
 * Checks output of the program: log lines, metrics, pages, output of commands, error messages. A key, a password or document
 * content in it fails the current test, whatever that test is about.
 * @param where name of the output, for the message
 * @param secrets further values that must not be shown, by their names
 */
export function captureLeaks(where: string, text: string, secrets: Readonly<Record<string, string>> = {}): void {
  for (const name of findExposed(text, secrets)) leaks.push(`${where}: the ${name}`);
  const found = findCanary(text);
  if (found !== null) leaks.push(`${where}: …${found.replaceAll('\n', '⏎')}…`);
}

/** Checks an error with everything that a careless log line could show of it. */
export function captureErrorLeaks(where: string, error: unknown): void {
  if (typeof error === 'object' && error !== null) {
    if (checked.has(error)) return;
    checked.add(error);
  }
  captureLeaks(where, everythingOf(error));
}

export function everythingOf(error: unknown): string {
  const all = { showHidden: true, depth: 20, getters: true } as const;
  return [String(error), JSON.stringify(error), inspect(error, all), (error as Error | null)?.stack].join('\n');
}

/** Returns the leaks since the last call. */
export function takeLeaks(): string[] {
  return leaks.splice(0);
}
