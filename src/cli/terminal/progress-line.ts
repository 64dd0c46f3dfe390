import type { CommandProcess } from '../context/command-process.js';

const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 10_000;
const TERMINAL_COLUMNS = 80;

/** How far long work is, on stderr: one line drawn anew on a terminal, a line now and then elsewhere. */
export interface ProgressLine {
  /** Shows the line unless the last one was shown a moment ago. */
  show(line: () => string): void;
  /** Says at once what has to be known, such as what is waited for: a line that stays, in the place of the drawn one. */
  say(line: string): void;
  /** Takes the drawn line away, so that other output may follow. */
  clear(): void;
}

export function progressLine({ note, redraws, noteColumns, clock }: CommandProcess): ProgressLine {
  const every = redraws ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
  // A line that runs on in a second row would not be taken away by drawing over it.
  const longest = (noteColumns ?? TERMINAL_COLUMNS) - 1;
  let shownAt = clock.monotonic();
  let drawn = false;
  const clear = () => {
    if (drawn) note('\r\x1b[K');
    drawn = false;
  };
  return {
    show: (line) => {
      if (clock.monotonic() - shownAt < every) return;
      shownAt = clock.monotonic();
      note(redraws ? `\r${line().slice(0, longest)}\x1b[K` : `${line()}\n`);
      drawn = redraws;
    },
    say: (line) => {
      clear();
      note(`${line}\n`);
    },
    clear,
  };
}
