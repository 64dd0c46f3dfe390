import type { CommandProcess } from '../context/command-process.js';

/** Intervals between updates on a terminal and elsewhere, milliseconds. */
const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 10_000;
const TERMINAL_COLUMNS = 80;

export type ProgressLine = ReturnType<typeof progressLine>;

/** Shows the progress of long work on stderr: one redrawn line on a terminal, otherwise a new line every 10 s. */
export function progressLine({ note, redraws, noteColumns, clock }: CommandProcess) {
  const every = redraws ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
  // Redrawing would not remove a line that wraps into a second row.
  const longest = (noteColumns ?? TERMINAL_COLUMNS) - 1;
  let shownAt = clock.monotonic();
  let drawn = false;
  /** Removes the drawn line, so that other output can follow. */
  const clear = (): void => {
    if (drawn) note('\r\x1b[K');
    drawn = false;
  };
  return {
    /** Shows the line if the last one is old enough, or `atOnce`. */
    show: (line: () => string, atOnce = false): void => {
      if (!atOnce && clock.monotonic() - shownAt < every) return;
      shownAt = clock.monotonic();
      note(redraws ? `\r${line().slice(0, longest)}\x1b[K` : `${line()}\n`);
      drawn = redraws;
    },
    /** Writes a permanent line immediately, in place of the drawn one. */
    say: (line: string): void => {
      clear();
      note(`${line}\n`);
    },
    clear,
  };
}
