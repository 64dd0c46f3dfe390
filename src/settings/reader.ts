import { HIDDEN, type Mistake } from './mistakes.js';
import { type KeptValue, type ReadFile, rereading } from './reread.js';
import type { Variable } from './variables.js';

/** Returns the name of the variable with the path of a file that contains the secret. */
export function fileVariableOf({ name }: { readonly name: string }): string {
  return `${name}_FILE`;
}

/** Returns the value of a secret as it was read first. */
export interface Secret<T> {
  (): T;
  /** Returns its current value. Its file is read on every call; while the file is missing or invalid, the last valid value counts. */
  readonly current: () => Promise<T>;
}

type Values<V> = { readonly [Setting in keyof V]: V[Setting] extends Variable<infer T> ? T : never };

/** Reads variables one by one and collects the mistakes. Use the values only if there are none. */
export class Reader {
  readonly mistakes: Mistake[] = [];
  readonly warnings: string[] = [];

  constructor(
    readonly env: NodeJS.ProcessEnv,
    readonly readFile: ReadFile,
    /** Values that were read from the same environment, by the name of their variable. */
    private readonly shared: Map<string, unknown> = new Map(),
    /** Called when a file that is read again is unusable. */
    readonly onKept: (kept: KeptValue) => void = () => {},
  ) {}

  /** Reads a value once for all readers that share it. Its mistakes are those of the first one. */
  once<T>({ name }: Pick<Variable, 'name'>, read: () => T): T {
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

  /** Returns the values of several variables, under the same names. */
  values<V extends Readonly<Record<string, Variable>>>(variables: V): Values<V> {
    const values = Object.entries(variables).map(([setting, variable]) => [setting, this.value(variable)]);
    return Object.fromEntries(values) as Values<V>;
  }

  /** Like {@link value}, for a secret that may change in its file. Null if neither it nor its file is set. */
  secret<T>(variable: Variable<T>): Secret<NonNullable<T>> | null {
    const fileVariable = fileVariableOf(variable);
    const path = this.env[fileVariable];
    if (!path) {
      const value = this.value(variable);
      return value === null ? null : secretOf(value as NonNullable<T>, async () => value as NonNullable<T>);
    }
    const expected = `either ${variable.name} or ${fileVariable}`;
    if (this.env[variable.name]) {
      this.addMistake(fileVariable, path, expected, `${variable.name} is set too`);
      return null;
    }
    return this.fileSecret(variable, fileVariable, path);
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
      this.warnings.push(`${variable.name} was set by Kubernetes for one of its Services and is ignored`);
      return null;
    }
    return given;
  }

  /** Like {@link secret}, for the file at a path that the given variable has. */
  fileSecret<T>(variable: Variable<T>, fileVariable: string, path: string): Secret<NonNullable<T>> | null {
    // The secret must not keep the reader in memory, which has a copy of the environment.
    const { readFile, onKept } = this;
    let text: string;
    try {
      text = readFile(path);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
      this.addMistake(fileVariable, path, 'the path of a readable file', `reading it failed (${code})`);
      return null;
    }
    if (withoutLineBreak(text) === '') {
      this.addMistake(fileVariable, path, `a file that contains ${variable.allowed}`, 'the file is empty');
      return null;
    }
    const value = this.parse(variable, withoutLineBreak(text), fileVariable) as NonNullable<T>;
    const parse = ([changed = '']: readonly string[]) => {
      const result = variable.schema.safeParse(withoutLineBreak(changed));
      if (!result.success) throw new TypeError('the file is invalid'); // the result may contain the secret
      return result.data as NonNullable<T>;
    };
    const read = { variable: fileVariable, files: [path], texts: [text], value, parse };
    return secretOf(value, rereading(read, readFile, onKept));
  }
}

export function secretOf<T>(first: T, current: () => Promise<T>): Secret<T> {
  return Object.assign(() => first, { current });
}

function withoutLineBreak(text: string): string {
  return text.replace(/[\r\n]+$/, '');
}

function isServiceLink(name: string, value: string): boolean {
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value);
}
