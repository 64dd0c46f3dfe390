import { HIDDEN, type Mistake } from './mistakes.js';
import type { Variable } from './variables.js';

/** Reads a whole text file; throws as `readFileSync` does. */
export type ReadFile = (path: string) => string;

/** A secret's value now. A file is read at every call; while it is missing or bad, the last good value counts. */
export type Secret<T> = () => T;

/** Reads variables one by one and collects what is wrong. A value that is wrong must not be used: check `mistakes` first. */
export class Reader {
  readonly mistakes: Mistake[] = [];
  readonly warnings: string[] = [];

  constructor(
    readonly env: NodeJS.ProcessEnv,
    readonly readFile: ReadFile,
  ) {}

  /** The value, its default, or null where it has none. Empty text counts as not set. */
  value<T>(variable: Variable<T>): T {
    const given = this.#given(variable) ?? variable.default;
    if (given !== null) return this.parse(variable, given, variable.name);
    if (variable.required) {
      const { name, secret, allowed } = variable;
      this.mistake(name, null, secret ? `${allowed}; or ${name}_FILE, the path of a file that holds it` : allowed);
    }
    return null as T; // the type of an optional variable; a required one was noted as a mistake
  }

  /** Like {@link value}, for a secret that may change in its file; null where neither it nor its file is set. */
  secret<T>(variable: Variable<T>): Secret<NonNullable<T>> | null {
    const fileVariable = `${variable.name}_FILE`;
    const path = this.env[fileVariable];
    if (!path) {
      const value = this.value(variable);
      return value === null ? null : () => value as NonNullable<T>;
    }
    const expected = `either ${variable.name} or ${fileVariable}`;
    if (this.env[variable.name]) {
      this.mistake(fileVariable, path, expected, `${variable.name} is set too`);
      return null;
    }
    return this.#fileSecret(variable, fileVariable, path);
  }

  mistake(variable: string, value: string | null, allowed: string, reason?: string): void {
    this.mistakes.push({ variable, value, allowed, reason });
  }

  parse<T>(variable: Variable<T>, text: string, shownAs: string): T {
    const result = variable.schema.safeParse(text);
    if (result.success) return result.data;
    const reason = result.error.issues.find(({ code }) => code === 'custom')?.message;
    const hidden = variable.secret || /:.*@/s.test(text); // an address that holds a password by mistake, however it is written
    this.mistake(shownAs, hidden ? HIDDEN : text, variable.allowed, reason === 'Invalid input' ? undefined : reason);
    return null as T; // never used: there is a mistake
  }

  /** A service named `scanfeed` or `scanfeed-admin` makes Kubernetes set names of ours: not what a person meant. */
  #given(variable: Variable): string | null {
    const given = this.env[variable.name];
    if (!given) return null;
    if (!variable.secret && isServiceLink(variable.name, given)) {
      this.warnings.push(`${variable.name} was set by Kubernetes for a service of that name and is ignored`);
      return null;
    }
    return given;
  }

  #fileSecret<T>(variable: Variable<T>, fileVariable: string, path: string): Secret<NonNullable<T>> | null {
    const read = () => this.readFile(path).replace(/[\r\n]+$/, '');
    let text: string;
    try {
      text = read();
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
      this.mistake(fileVariable, path, 'the path of a file that can be read', `reading it failed (${code})`);
      return null;
    }
    if (text === '') {
      this.mistake(fileVariable, path, `a file that holds ${variable.allowed}`, 'the file is empty');
      return null;
    }
    let good = this.parse(variable, text, fileVariable) as NonNullable<T>;
    return () => {
      try {
        const now = read();
        if (now !== text) {
          const result = variable.schema.safeParse(now);
          if (result.success) {
            text = now;
            good = result.data as NonNullable<T>;
          }
        }
      } catch {
        // being replaced: the last good value counts
      }
      return good;
    };
  }
}

function isServiceLink(name: string, value: string): boolean {
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value);
}
