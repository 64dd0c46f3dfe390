import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'undici';
import { hasTool, runTool } from './tools.js';

/** A program on Node that does not answer, as it can be looked at from outside. */
export interface Hung {
  /** As this machine numbers it. */
  readonly pid: number;
  /** Sends it a signal. */
  signal(name: 'SIGUSR1'): unknown;
  /** All that it has written. */
  output(): string;
}

const PATIENCE_MS = 5_000;

/** Where a program is that does not answer: what each thread does, its memory, and the stacks that can be had. */
export async function explainHang(hung: Hung): Promise<string> {
  const parts = {
    // Twice, to distinguish busy processes from waiting ones.
    threads: `${await threads(hung.pid)}\na second later:\n${await sleep(1_000).then(() => threads(hung.pid))}`,
    memory: await memory(hung.pid),
    'JavaScript stack': await javaScriptStack(hung),
    'end of its output': hung.output().slice(-4_000),
  };
  return Object.entries(parts)
    .map(([name, text]) => `-- ${name}\n${text.trim()}`)
    .join('\n');
}

const readable = (path: string) =>
  readFile(path, 'utf8').then(
    (text) => text.trim(),
    () => '?',
  );

/** A line each: its name, its state, the ticks it has computed, and what it waits for in the kernel. */
async function threads(pid: number): Promise<string> {
  const ids = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lines = ids.map(async (id) => {
    const folder = `/proc/${pid}/task/${id}`;
    const stat = await readable(`${folder}/stat`);
    const [state, ...numbers] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(numbers[10]) + Number(numbers[11]);
    return `${id} ${await readable(`${folder}/comm`)} ${state} ${ticks} ticks, waits in ${await readable(`${folder}/wchan`)}`;
  });
  return (await Promise.all(lines)).join('\n');
}

/** Of its control group, in the second and in the first version: a program at its limit may wait to be ended. */
async function memory(pid: number): Promise<string> {
  const groups = await readable(`/proc/${pid}/cgroup`);
  const inGroup = async (folder: string, controllers: string, files: readonly string[]) => {
    const path = new RegExp(`^\\d+:${controllers}:(.*)$`, 'm').exec(groups)?.[1] ?? '';
    return Promise.all(
      files.map(async (file) => `${file}: ${(await readable(`${folder}${path}/${file}`)).replaceAll('\n', '; ')}`),
    );
  };
  const [second, first] = await Promise.all([
    inGroup('/sys/fs/cgroup', '', ['memory.current', 'memory.max', 'memory.events', 'memory.pressure']),
    inGroup('/sys/fs/cgroup/memory', 'memory', ['memory.usage_in_bytes', 'memory.failcnt', 'memory.oom_control']),
  ]);
  return [...second, ...first].filter((line) => !line.endsWith(': ?')).join('\n');
}

/** By Node's inspector, which SIGUSR1 opens on a thread of its own. It interrupts JavaScript, but no native code. */
async function javaScriptStack({ signal, output }: Hung): Promise<string> {
  await signal('SIGUSR1');
  let url: string | undefined;
  for (let waited = 0; url === undefined && waited < PATIENCE_MS; waited += 100) {
    await sleep(100);
    url = /Debugger listening on (ws:\S+)/.exec(output())?.[1];
  }
  if (url === undefined) return 'the inspector did not open';
  const socket = new WebSocket(url);
  try {
    await once(socket, 'open', { signal: AbortSignal.timeout(PATIENCE_MS) });
    const paused = whenPaused(socket);
    for (const [id, method] of ['Debugger.enable', 'Debugger.pause'].entries())
      socket.send(JSON.stringify({ id, method }));
    return await Promise.race([
      paused,
      sleep(PATIENCE_MS, 'it does not come out of native code, or waits for an event'),
    ]);
  } catch (error) {
    return `the inspector did not answer: ${error}`;
  } finally {
    socket.close();
  }
}

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly location: { readonly lineNumber: number };
}

function whenPaused(socket: WebSocket): Promise<string> {
  return new Promise((resolve) => {
    socket.addEventListener('message', ({ data }) => {
      const { method, params } = JSON.parse(String(data)) as { method?: string; params?: { callFrames: CallFrame[] } };
      if (method !== 'Debugger.paused') return;
      const frames = params?.callFrames ?? [];
      resolve(
        frames.map(({ functionName, url, location }) => `${functionName} ${url}:${location.lineNumber + 1}`).join('\n'),
      );
    });
  });
}

/** Of every thread, where there is a debugger: for what hangs outside of JavaScript. */
export async function nativeStacks(pid: number): Promise<string> {
  if (!hasTool('gdb')) return 'gdb is not installed';
  return (await runTool('gdb', ['-p', String(pid), '-batch', '-ex', 'thread apply all backtrace 25'])).stdout;
}
