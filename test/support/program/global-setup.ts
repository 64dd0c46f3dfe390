import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The bin of the program, compiled from the sources as they are. */
    programPath: string;
  }
}

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Compiles the program for the files that run it as a process, once a run: a build left from before might be stale. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-program-'));
  // What the program finds relative to itself.
  for (const name of ['package.json', 'migrations', 'node_modules'])
    await symlink(join(root, name), join(folder, name));
  const dist = join(folder, 'dist');
  await compile(dist);
  project.provide('programPath', join(dist, 'main.js'));
  return () => rm(folder, { recursive: true, force: true });
}

/** Types are checked elsewhere. */
async function compile(outDir: string): Promise<void> {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const settings = ['-p', join(root, 'tsconfig.build.json'), '--noCheck', '--declaration', 'false'];
  await promisify(execFile)(process.execPath, [tsc, ...settings, '--outDir', outDir]);
}
