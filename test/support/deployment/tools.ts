import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'vitest';

export interface ToolRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. Rejects if there is none of that name. */
export async function runTool(name: string, args: readonly string[], input = ''): Promise<ToolRun> {
  const child = spawn(name, args);
  child.stdin.on('error', () => {}); // one that ends early reads no more
  child.stdin.end(input);
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { status: status as number | null, stdout, stderr };
}

/** Whether there is a program of that name. */
export function hasTool(name: string): boolean {
  return spawnSync(name, ['--help'], { stdio: 'ignore' }).error === undefined;
}

/** Skips a test on a machine without the tool; not under CI, where its absence is a failure. */
export function requireTool({ skip }: Pick<TestContext, 'skip'>, name: string, there = hasTool(name)): void {
  skip(!there && !process.env.CI, `${name} is not installed`);
}
