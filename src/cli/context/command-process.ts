import type { Writable } from 'node:stream';
import { type Clock, systemClock } from '../../core/clock.js';
import { escapeControls } from '../terminal/format.js';
import { askUser } from './ask-user.js';
import type { CommonOptions } from './common-options.js';
import { CommandFailure, EXIT } from './exit.js';

export interface CommandProcess {
  /** Environment variables; undefined for those of the process. */
  readonly env: NodeJS.ProcessEnv | undefined;
  readonly clock: Clock;
  /** Writes results to stdout. At a terminal control characters are escaped, because documents and file names may contain them. */
  write(data: string | Uint8Array): void;
  /** Writes text that controls the terminal on stdout; everything in it that comes from elsewhere is printable. */
  writeControls(text: string): void;
  /**
   * Waits until the results are written, so that they do not pile up in memory. Resolves to false if they cannot be, because the
   * program that reads them has ended.
   */
  written(): Promise<boolean>;
  /** Writes messages to stderr. */
  note(text: string): void;
  /** Width of the terminal on stdout; null if it is unknown, or stdout is a file or a pipe. */
  readonly columns: number | null;
  /** Whether results can be coloured: stdout is a terminal with colours, and NO_COLOR is not set. */
  readonly colours?: boolean;
  /** Width of the terminal on stderr; null if it is a file or a pipe, where a line cannot be redrawn. */
  readonly noteColumns: number | null;
  /** Asks the user at the terminal; null without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | null;
}

/** Width of a terminal that does not state it. */
const TERMINAL_COLUMNS = 80;

export const thisProcess: CommandProcess = {
  env: undefined,
  clock: systemClock,
  write: (data) => void process.stdout.write(process.stdout.isTTY ? escapeControls(data) : data),
  writeControls: (text) => void process.stdout.write(text),
  written: () => new Promise((resolve) => process.stdout.write('', (error) => resolve(!error))),
  note: (text) => void process.stderr.write(text),
  get columns() {
    return process.stdout.isTTY ? process.stdout.columns || null : null;
  },
  get colours() {
    return process.stdout.isTTY === true && process.stdout.hasColors();
  },
  get noteColumns() {
    return process.stderr.isTTY ? process.stderr.columns || TERMINAL_COLUMNS : null;
  },
  get ask() {
    return process.stdin.isTTY && process.stderr.isTTY ? (question: string) => askUser(question) : null;
  },
};

/**
 * Prints the plan and asks for a confirmation, unless `--yes` was given.
 * @throws CommandFailure if the answer is not yes, or there is no terminal
 */
export async function confirm(
  { note, ask }: CommandProcess,
  { yes }: CommonOptions,
  plan: string,
  question: string,
): Promise<void> {
  if (yes) return;
  note(plan);
  if (ask === null) throw new CommandFailure('the confirmation needs a terminal; add --yes to skip it', EXIT.usage);
  const answer = (await ask(`${question} [y/N] `)).trim().toLowerCase();
  if (answer !== 'y' && answer !== 'yes') throw new CommandFailure('nothing was changed');
}

/** Watches an output stream of the process. A failed write does not end the process. */
export function watchOutput(stream: Writable) {
  let lost: string | null = null;
  stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') lost ??= message;
  });
  return {
    /**
     * Waits until everything is written or has failed. Resolves to the reason of the failure in one line, or to null if nothing
     * was lost or the reader has gone (`scanfeed … | head`).
     */
    flushed: async (): Promise<string | null> => {
      // Without pending writes an empty write may fail, and errors arrive one tick later.
      if (stream.writableLength > 0) await new Promise<void>((resolve) => stream.write('', () => resolve()));
      else await new Promise<void>((resolve) => setImmediate(resolve));
      return lost;
    },
  };
}
