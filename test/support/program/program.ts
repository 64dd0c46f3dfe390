import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { inject } from 'vitest';
import { defaultApiKey } from '../../../src/emulator/options.js';
import { captureLeaks } from '../canaries/capture-leaks.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A line of the log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly level: string; readonly message: string };

/** Removes the default key of the emulated service, which `demo` and `emulator` print on purpose. */
function withoutMadeUpKey([command = '']: readonly string[], stdout: string): string {
  return ['demo', 'emulator'].includes(command) ? stdout.replaceAll(defaultApiKey, '…') : stdout;
}

/** The program as a separate process. */
export class Program {
  stdout = '';
  stderr = '';
  /** Resolves when the process has ended and all of its output was read. */
  readonly exited: Promise<Exit>;
  #exit: Exit | null = null;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #watchers = new Set<() => void>();

  /**
   * @param env the whole environment, except for PATH, HOME and TZ
   * @param nodeOptions options of Node
   */
  constructor(
    args: readonly string[],
    readonly env: Readonly<Record<string, string>>,
    nodeOptions: readonly string[] = [],
  ) {
    const { PATH = '', HOME = '', TZ = '' } = process.env;
    const command = [...nodeOptions, inject('programPath'), ...args];
    this.#child = spawn(process.execPath, command, { env: { PATH, HOME, TZ, ...env } });
    this.#child.stdin.end();
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      this.#changed();
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exited = new Promise((resolve, reject) => {
      this.#child.on('error', reject).on('close', (code, signal) => {
        this.#exit = { code, signal };
        captureLeaks(`stdout of ${args.join(' ')}`, withoutMadeUpKey(args, this.stdout));
        captureLeaks(`stderr of ${args.join(' ')}`, this.stderr);
        this.#changed();
        resolve(this.#exit);
      });
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#exit === null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Sends a signal and waits for the end. */
  async stop(name: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    this.signal(name);
    return this.exited;
  }

  /** Returns the lines logged so far, or only those with this message. */
  logged(message?: string): LogLine[] {
    const lines = this.stdout.split('\n').slice(0, -1);
    const parsed = lines.map((line) => JSON.parse(line) as LogLine);
    return message === undefined ? parsed : parsed.filter((line) => line.message === message);
  }

  /** Resolves with the first line that has this message and these fields. Rejects if the process ends first. */
  logs(message: string, fields: Readonly<Record<string, unknown>> = {}): Promise<LogLine> {
    const fits = (line: LogLine) => Object.entries(fields).every(([name, value]) => line[name] === value);
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.logged(message).find(fits);
        if (found === undefined && this.running) return;
        this.#watchers.delete(look);
        if (found !== undefined) resolve(found);
        else reject(new Error(`ended without logging "${message}"; it wrote\n${this.stdout}${this.stderr}`));
      };
      this.#watchers.add(look);
      look();
    });
  }

  #changed(): void {
    for (const look of this.#watchers) look();
  }
}
