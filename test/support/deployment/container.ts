import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { explainHang, nativeStacks } from './explain-hang.js';
import { runTool, type ToolRun } from './tools.js';

const ENGINE = process.env.CONTAINER_ENGINE ?? 'podman';
const IMAGE = process.env.SCANFEED_IMAGE ?? 'localhost/scanfeed:test';

/** Of the image, `linux/arm64` for example, where it is not that of the machine. */
export const PLATFORM = process.env.IMAGE_PLATFORM;

/** A container's limit. An emulated processor needs memory of its own. */
export const MEMORY_MIB = PLATFORM === undefined ? 256 : 768;

/** As the chart runs it: nobody, nothing to write to, no rights, and little memory. */
const RESTRICTED = [
  ...['--read-only', '--user', '65532', '--memory', `${MEMORY_MIB}m`, '--memory-swap', `${MEMORY_MIB}m`],
  ...['--cap-drop', 'all', '--security-opt', 'no-new-privileges', '--network', 'host'],
  ...(PLATFORM === undefined ? [] : ['--platform', PLATFORM]),
];

export interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Paths within the container by folders of the host, to be read only. */
  readonly mounts?: Readonly<Record<string, string>>;
  readonly entrypoint?: string;
}

/** The image as a container, removed after the test. */
export class Container {
  readonly name = `scanfeed-test-${randomBytes(5).toString('hex')}`;
  output = '';
  /** The exit code, once it has ended and all that it wrote was read. */
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;

  constructor(args: readonly string[], { env = {}, mounts = {}, entrypoint }: ContainerOptions = {}) {
    const options = [
      ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...Object.entries(mounts).flatMap(([folder, path]) => ['--volume', `${folder}:${path}:ro`]),
      ...(entrypoint === undefined ? [] : ['--entrypoint', entrypoint]),
    ];
    this.#child = spawn(ENGINE, [
      'run',
      '--no-healthcheck',
      '--name',
      this.name,
      ...RESTRICTED,
      ...options,
      IMAGE,
      ...args,
    ]);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.exited = new Promise((resolve, reject) => {
      this.#child.on('error', reject).on('close', (code) => resolve(code));
    });
    onTestFinished(async () => {
      await runTool(ENGINE, ['rm', '--force', this.name]);
    });
  }

  signal(name: NodeJS.Signals): Promise<ToolRun> {
    return runTool(ENGINE, ['kill', '--signal', name, this.name]);
  }

  /** Runs another program in it. */
  execute(command: readonly string[]): Promise<ToolRun> {
    return runTool(ENGINE, ['exec', this.name, ...command]);
  }

  /** What the engine knows of it. */
  async inspect(): Promise<{ State: { Running: boolean; Pid: number; OOMKilled: boolean; ExitCode: number } }> {
    const { stdout } = await runTool(ENGINE, ['inspect', this.name]);
    return JSON.parse(stdout)[0];
  }

  /** Why it does not do what it should, as far as that can be seen from outside. */
  async explain(): Promise<string> {
    const { State } = await this.inspect();
    const { Pid: pid } = State;
    const state = `-- state\n${JSON.stringify(State)}`;
    if (!State.Running) return `${state}\n-- end of its output\n${this.output.slice(-4_000)}`;
    const hung = { pid, signal: (name: NodeJS.Signals) => this.signal(name), output: () => this.output };
    return `${state}\n${await explainHang(hung)}\n-- native stacks\n${await nativeStacks(pid)}`;
  }
}

export interface ImageConfig {
  readonly Architecture: string;
  readonly User: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

export async function imageConfig(): Promise<ImageConfig> {
  const { stdout } = await runTool(ENGINE, ['image', 'inspect', IMAGE]);
  const [{ Architecture, Config, Healthcheck }] = JSON.parse(stdout);
  // Podman shows the health check separately.
  return { Architecture, Healthcheck, ...Config };
}
