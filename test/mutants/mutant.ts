/** A deliberate bug: texts of a file that are replaced by others. */
export interface Mutant {
  /** What the program does wrong. */
  readonly name: string;
  /** Which tests must notice: those without a database, those of the statements, or those of the reports. */
  readonly tests: 'engine' | 'statements' | 'reports';
  readonly patches: readonly Patch[];
}

export interface Patch {
  readonly file: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly replace: string;
}

export const patch = (file: string, find: string, replace: string): Patch => ({ file, find, replace });
