import { CommanderError } from 'commander';
import { classifyError } from '../../core/errors.js';

/** Exit codes; 64, 75 and 78 are those of `sysexits.h`. */
export const EXIT = { done: 0, failed: 1, usage: 64, tryAgain: 75, settings: 78, interrupted: 130 } as const;

/** Of several failures, the first one of these determines the exit code. */
const WORST_FIRST: readonly number[] = [EXIT.usage, EXIT.settings, EXIT.failed, EXIT.tryAgain];

export function worstOf(codes: readonly number[]): number {
  return WORST_FIRST.find((code) => codes.includes(code)) ?? EXIT.failed;
}

/** Exit codes in the help of every command; described in docs/commands/README.md. */
export const EXIT_HELP = `
Exit codes: ${EXIT.done} success, ${EXIT.failed} failure or unfinished work, ${EXIT.usage} wrong usage, ${EXIT.tryAgain} try
again later, ${EXIT.settings} wrong settings, ${EXIT.interrupted} interrupted, 143 ended by SIGTERM`;

/** A failure with a message of one line: the problem and its remedy. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}

/**
 * Kinds for which the daemon holds, but which usually mean an unavailable service: maintenance pages and gateways respond with
 * HTML. Other held kinds (a redirect, a key, JSON of another shape) need a change.
 */
const UNAVAILABLE_KINDS: ReadonlySet<string> = new Set(['not_json']);

/** Returns the message and exit code of a failed command. The message has a stack trace only if the failure is a bug. */
export function explain(error: unknown): { readonly message: string | null; readonly exitCode: number } {
  if (error instanceof CommanderError) {
    // Commander has already printed its message; help and version are not failures.
    return { message: null, exitCode: error.exitCode === 0 ? EXIT.done : EXIT.usage };
  }
  const { message, exitCode, kind, action } = (error ?? {}) as Record<string, unknown>;
  const text = typeof message === 'string' ? message : String(error);
  if (typeof exitCode === 'number') return { message: text, exitCode };
  if (typeof kind === 'string' && action !== undefined) {
    const isUnavailable = classifyError(error).action === 'retry' || UNAVAILABLE_KINDS.has(kind);
    return { message: text, exitCode: isUnavailable ? EXIT.tryAgain : EXIT.failed };
  }
  const stack = error instanceof Error ? (error.stack ?? text) : text;
  return { message: `this is a bug in scanfeed: ${stack}`, exitCode: EXIT.failed };
}
