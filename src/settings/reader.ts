import { readFileSync } from 'node:fs';
import { HIDDEN, type Mistake } from './mistakes.js';
import type { Variable } from './variables.js';

/** Reads a text file. Throws as `readFileSync` does. */
export type ReadFile = (path: string) => string;

export function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

/** Returns the name of the variable with the path of a file that contains the secret. */
export function fileVariableOf({ name }: { readonly name: string }): string {
  return `${name}_FILE`;
}

/**
 * Returns the current value of a secret. Its file is read on every call; while the file is missing or invalid, the last valid value
 * is returned.
 */
export type Secret<T> = () => T;

/** Reads variables one by one and collects the mistakes. The values may be used only if there are none. */
export class Reader {
  readonly mistakes: Mistake[] = [];
  readonly warnings: string[] = [];

  constructor(
    readonly env: NodeJS.ProcessEnv,
    readonly readFile: ReadFile,
    /** Values that were read from the same environment, by the name of their variable. */
    private readonly shared: Map<string, unknown> = new Map(),
  ) {}

  /** Reads a value once for all readers that share it. Its mistakes are those of the first one. */
  once<T>({ name }: Variable, read: () => T): T {
    if (!this.shared.has(name)) this.shared.set(name, read());
    return this.shared.get(name) as T;
  }

  /** Returns the value or the default; null if there is neither. An empty value counts as not set. */
  value<T>(variable: Variable<T>): T {
    const given = this.#given(variable) ?? variable.default;
    if (given !== null) return this.parse(variable, given, variable.name);
    if (variable.required) {
      const { name, secret, allowed } = variable;
      this.addMistake(
        name,
        null,
        secret ? `${allowed}; or ${fileVariableOf(variable)}, the path of a file that contains it` : allowed,
      );
    }
    return null as T; // the type of an optional variable; for a required one there is a mistake
  }

  /** Like {@link value}, for a secret that may change in its file. Null if neither it nor its file is set. */
  secret<T>(variable: Variable<T>): Secret<NonNullable<T>> | null {
    const fileVariable = fileVariableOf(variable);
    const path = this.env[fileVariable];
    if (!path) {
      const value = this.value(variable);
      return value === null ? null : () => value as NonNullable<T>;
    }
    const expected = `either ${variable.name} or ${fileVariable}`;
    if (this.env[variable.name]) {
      this.addMistake(fileVariable, path, expected, `${variable.name} is set too`);
      return null;
    }
    return this.#fileSecret(variable, fileVariable, path);
  }

  addMistake(variable: string, value: string | null, allowed: string, reason?: string): void {
    this.mistakes.push({ variable, value, allowed, reason });
  }

  parse<T>(variable: Variable<T>, text: string, shownAs: string): T {
    const result = variable.schema.safeParse(text);
    if (result.success) return result.data;
    const reason = result.error.issues.find(({ code }) => code === 'custom')?.message;
    const hidden = variable.secret || /:.*@/s.test(text); // perhaps a URL with a password
    this.addMistake(shownAs, hidden ? HIDDEN : text, variable.allowed, reason === 'Invalid input' ? undefined : reason);
    return null as T; // never used: there is a mistake
  }

  /** Ignores what Kubernetes sets for a service named `scanfeed` or `scanfeed-admin`, such as SCANFEED_ADMIN_PORT. */
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
    const { readFile } = this; // the secret must not keep the reader in memory, which has a copy of the environment
    const read = () => readFile(path).replace(/[\r\n]+$/, '');
    let text: string;
    try {
      text = read();
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
      this.addMistake(fileVariable, path, 'the path of a readable file', `reading it failed (${code})`);
      return null;
    }
    if (text === '') {
      this.addMistake(fileVariable, path, `a file that contains ${variable.allowed}`, 'the file is empty');
      return null;
    }
    let lastValid = this.parse(variable, text, fileVariable) as NonNullable<T>;
    return () => {
      try {
        const now = read();
        if (now !== text) {
          const result = variable.schema.safeParse(now);
          if (result.success) {
            text = now;
            lastValid = result.data as NonNullable<T>;
          }
        }
      } catch {
        // the file is being replaced: the last valid value counts
      }
      return lastValid;
    };
  }
}

function isServiceLink(name: string, value: string): boolean {
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value);
}
