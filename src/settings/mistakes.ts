export interface Mistake {
  readonly variable: string;
  /** The given value; null if there is none, `(hidden)` if it is a secret. */
  readonly value: string | null;
  readonly allowed: string;
  /** What is wrong with the value, if `allowed` does not show it. */
  readonly reason?: string | undefined;
}

export const HIDDEN = '(hidden)';

/** All mistakes in the settings. The message is for the terminal and shows no secrets. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  /** EX_CONFIG of sysexits.h. */
  readonly exitCode = 78;

  constructor(readonly mistakes: readonly Mistake[]) {
    const count = mistakes.length === 1 ? '1 setting is wrong' : `${mistakes.length} settings are wrong`;
    super(`${count}:\n${linesOf(mistakes)}`);
  }
}

/** Maximum number of mistakes in a message: a file of feeds may have thousands. */
const LISTED_MISTAKES = 50;

function linesOf(mistakes: readonly Mistake[]): string {
  const lines = mistakes.slice(0, LISTED_MISTAKES).map((mistake) => `  ${describeMistake(mistake)}`);
  const others = mistakes.length - lines.length;
  return [...lines, ...(others > 0 ? [`  and ${others} more`] : [])].join('\n');
}

/** Describes a mistake in one line, without secrets. */
export function describeMistake({ variable, value, allowed, reason }: Mistake): string {
  const given = value === null ? 'is not set' : `is ${value === HIDDEN ? 'set (value hidden)' : quote(value)}`;
  const because = reason === undefined ? '' : `, but ${reason}`;
  return `${variable} ${given}${because}; expected: ${allowed}`;
}

/** Quotes a value on one line, shortened to 80 characters. */
function quote(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}
