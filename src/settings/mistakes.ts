/** One setting that cannot be used as it is. */
export interface Mistake {
  readonly variable: string;
  /** What was given: null where nothing was, `(hidden)` where it is a secret. */
  readonly value: string | null;
  readonly allowed: string;
  /** What is wrong with the value, where `allowed` does not say it. */
  readonly reason?: string | undefined;
}

/** What is shown in place of a secret. */
export const HIDDEN = '(hidden)';

/** Settings that cannot be used, all of them. Its message is for the terminal and shows no secret. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  /** EX_CONFIG of sysexits.h. */
  readonly exitCode = 78;

  constructor(readonly mistakes: readonly Mistake[]) {
    const count = mistakes.length === 1 ? '1 setting is wrong' : `${mistakes.length} settings are wrong`;
    super(`${count}:\n${mistakes.map((mistake) => `  ${describeMistake(mistake)}`).join('\n')}`);
  }
}

/** One line, in which no secret is shown. */
export function describeMistake({ variable, value, allowed, reason }: Mistake): string {
  const given = value === null ? 'is not set' : `is ${value === HIDDEN ? 'set (value hidden)' : quote(value)}`;
  const because = reason === undefined ? '' : `, but ${reason}`;
  return `${variable} ${given}${because}; expected: ${allowed}`;
}

/** On one line, and not longer than a line. */
function quote(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}
