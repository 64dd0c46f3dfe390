import { type ChildProcess, spawn } from 'node:child_process';
import { captureLeaks } from '../../../support/canaries/capture-leaks.js';

const LINES_KEPT = 20;

interface Replica {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<void>;
  readonly lastLines: string[];
  /** Its end is our doing. */
  doomed: boolean;
}

/** Processes of the daemon on one feed. A killed one is replaced immediately. */
export class Fleet {
  /** Ends that nobody asked for. */
  readonly surprises: string[] = [];
  readonly #replicas = new Set<Replica>();
  #wanted = 0;

  /**
   * @param program the compiled bin
   * @param env settings of the daemon
   */
  constructor(
    private readonly program: string,
    private readonly env: Readonly<Record<string, string>>,
  ) {}

  get pids(): readonly number[] {
    return [...this.#replicas].map(({ pid }) => pid);
  }

  /** What those that run wrote last. */
  lastWords(): string {
    return [...this.#replicas].map(({ pid, lastLines }) => [`daemon ${pid}`, ...lastLines].join('\n  ')).join('\n');
  }

  /** Starts or kills until there are so many. */
  async resize(wanted: number): Promise<void> {
    this.#wanted = wanted;
    for (const pid of this.pids.slice(wanted)) await this.kill(pid);
    this.#refill();
  }

  /** Kills one with SIGKILL and starts another in its place. False where there is none such. */
  async kill(pid: number): Promise<boolean> {
    const victim = this.#find(pid);
    if (victim === undefined) return false;
    victim.doomed = true;
    victim.child.kill('SIGKILL');
    await victim.ended;
    this.#refill();
    return true;
  }

  /** SIGSTOP or SIGCONT. */
  signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#find(pid)?.child.kill(name);
  }

  #find(pid: number): Replica | undefined {
    return [...this.#replicas].find((replica) => replica.pid === pid);
  }

  #refill(): void {
    while (this.#replicas.size < this.#wanted) this.#start();
  }

  #start(): void {
    const { PATH = '', HOME = '' } = process.env;
    const child = spawn(process.execPath, [this.program, 'run'], {
      env: { PATH, HOME, ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const lastLines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      let begun = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        const lines = (begun + text).split('\n');
        begun = lines.pop() ?? '';
        captureLeaks('a daemon of the fleet', lines.join('\n'));
        lastLines.push(...lines.filter((line) => line !== ''));
        lastLines.splice(0, Math.max(0, lastLines.length - LINES_KEPT));
      });
    }
    const orphaned = () => void child.kill('SIGKILL');
    process.once('exit', orphaned);
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const replica: Replica = { child, pid: child.pid ?? 0, ended, lastLines, doomed: false };
    this.#replicas.add(replica);
    child.once('close', (code, signal) => {
      process.off('exit', orphaned);
      this.#replicas.delete(replica);
      if (replica.doomed) return;
      this.surprises.push(`a daemon ended by itself (${signal ?? code}):\n  ${lastLines.join('\n  ')}`);
      this.#refill();
    });
  }
}
