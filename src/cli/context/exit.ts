import { CommanderError } from 'commander';
import { classifyError } from '../../core/errors.js';

/** Exit codes, as `sysexits.h` names them where it does. */
export const EXIT = { done: 0, failed: 1, usage: 64, tryAgain: 75, settings: 78, interrupted: 130 } as const;

/** For the help of every command; docs/operating.md says more. */
export const EXIT_HELP = `
Exit codes: ${EXIT.done} done, ${EXIT.failed} it failed or something is left, ${EXIT.usage} wrong usage, ${EXIT.tryAgain} try
again later, ${EXIT.settings} wrong settings, ${EXIT.interrupted} interrupted`;

/** A failure that says in one line what is wrong and what to do about it. */
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
 * Held by the daemon, and yet mostly a service that is away: maintenance pages and gateways answer in HTML. The others that
 * are held (a redirect, a key, JSON of another shape) want somebody to change something.
 */
const AWAY_KINDS: ReadonlySet<string> = new Set(['not_json']);

/** What a person is told about a failed command, and its exit code. Never a stack trace, unless it is a bug. */
export function explain(error: unknown): { readonly message: string | null; readonly exitCode: number } {
  if (error instanceof CommanderError) {
    // Commander has printed its own message; help and version are no failures.
    return { message: null, exitCode: error.exitCode === 0 ? EXIT.done : EXIT.usage };
  }
  const { message, exitCode, kind, action } = (error ?? {}) as Record<string, unknown>;
  const text = typeof message === 'string' ? message : String(error);
  if (typeof exitCode === 'number') return { message: text, exitCode };
  if (typeof kind === 'string' && action !== undefined) {
    const away = classifyError(error).action === 'retry' || AWAY_KINDS.has(kind);
    return { message: text, exitCode: away ? EXIT.tryAgain : EXIT.failed };
  }
  const stack = error instanceof Error ? (error.stack ?? text) : text;
  return { message: `this is a bug in scanfeed: ${stack}`, exitCode: EXIT.failed };
}
