import { createInterface, type ReadLineOptions } from 'node:readline/promises';
import type { Writable } from 'node:stream';
import type { Clock } from '../../core/clock.js';
import { systemClock } from '../../core/clock.js';
import { CommandFailure, EXIT } from './exit.js';

/** What a command needs of its process. */
export interface CommandProcess {
  /** The environment; undefined: that of the process. */
  readonly env: NodeJS.ProcessEnv | undefined;
  readonly clock: Clock;
  /** Results: stdout. */
  write(data: string | Uint8Array): void;
  /** Everything said besides: stderr. */
  note(text: string): void;
  /** Columns of the terminal that results go to; null where they go to a file or another program. */
  readonly columns: number | null;
  /** Whether results may be coloured: a terminal that can, and nobody who does not want it (NO_COLOR). */
  readonly colours?: boolean;
  /** Calls back when nobody reads results any more: the program that they were piped to has ended. */
  onGone?(callback: () => void): void;
  /** Whether notes are seen by a person at once, so that a line may be drawn anew. */
  readonly redraws: boolean;
  /** Columns of the terminal that notes go to; null or missing: not known. */
  readonly noteColumns?: number | null;
  /** Asks the person at the terminal; null where there is none. */
  readonly ask: ((question: string) => Promise<string>) | null;
}

/** The process itself. */
export const thisProcess: CommandProcess = {
  env: undefined,
  clock: systemClock,
  write: (data) => void process.stdout.write(data),
  note: (text) => void process.stderr.write(text),
  get columns() {
    return process.stdout.isTTY ? process.stdout.columns : null;
  },
  get colours() {
    return process.stdout.isTTY === true && process.stdout.hasColors();
  },
  onGone: (callback) => void process.stdout.once('error', callback),
  get redraws() {
    return process.stderr.isTTY === true;
  },
  get noteColumns() {
    return process.stderr.isTTY ? process.stderr.columns : null;
  },
  get ask() {
    return process.stdin.isTTY && process.stderr.isTTY ? (question: string) => askPerson(question) : null;
  },
};

/**
 * On stderr, so that a result on stdout stays whole. An empty answer where the input ends without one.
 * @param terminal the streams of a terminal; by default those of the process
 * @throws CommandFailure at Ctrl-C, which reaches the question and not the process
 */
export async function askPerson(
  question: string,
  terminal: ReadLineOptions = { input: process.stdin, output: process.stderr },
): Promise<string> {
  const lines = createInterface(terminal);
  const ended = new Promise<string>((resolve, reject) => {
    lines.once('SIGINT', () => reject(new CommandFailure('interrupted; nothing was changed', EXIT.interrupted)));
    lines.once('close', () => resolve(''));
  });
  let answered = false;
  const answer = lines.question(question).then((text) => {
    answered = true;
    return text;
  });
  try {
    return await Promise.race([answer, ended]);
  } finally {
    lines.close();
    // What is said next begins a line of its own.
    if (!answered) terminal.output?.write('\n');
  }
}

/**
 * Prints the plan and asks the person at the terminal to confirm it, unless `--yes` was given.
 * @throws CommandFailure if the answer is not yes, or nobody can be asked
 */
export async function confirm(
  { note, ask }: CommandProcess,
  { plan, question, yes }: { readonly plan: string; readonly question: string; readonly yes: boolean },
): Promise<void> {
  if (yes) return;
  note(plan);
  if (ask === null) throw new CommandFailure('nobody can be asked here: add --yes to go ahead', EXIT.usage);
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
      // Without pending writes there is nothing to write behind, and an empty write may fail; errors arrive one tick later.
      if (stream.writableLength > 0) await new Promise<void>((resolve) => stream.write('', () => resolve()));
      else await new Promise<void>((resolve) => setImmediate(resolve));
      return lost;
    },
  };
}
