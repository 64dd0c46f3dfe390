import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface CompiledProgram {
  /** The bin. */
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Compiles the program from the sources as they are, into a folder of its own: a build left from before might be stale.
 * Types are checked elsewhere.
 * @param root of the project
 */
export async function compileProgram(root: string): Promise<CompiledProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-program-'));
  // What the program finds relative to itself.
  for (const name of ['package.json', 'migrations', 'openapi', 'node_modules'])
    await symlink(join(root, name), join(folder, name));
  const dist = join(folder, 'dist');
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const settings = ['-p', join(root, 'tsconfig.build.json'), '--noCheck', '--declaration', 'false', '--outDir', dist];
  await promisify(execFile)(process.execPath, [tsc, ...settings]);
  return { path: join(dist, 'main.js'), remove: () => rm(folder, { recursive: true, force: true }) };
}
