import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The root of the project. */
    root: string;
    /** The packed package. */
    tarball: string;
    /** A folder that has installed it, and nothing else. */
    consumer: string;
    /** The same with the tools of a developer. */
    project: string;
  }
}

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What a developer has besides. Taken from here, since it is not what is tested. */
const TOOLS = ['typescript', 'vitest', '@types/node', 'undici-types'];

/** Builds and packs the package once, and installs it as anyone would: in an empty folder, with the engines checked. */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-package-'));
  await run(process.execPath, ['packaging/build.mjs'], { cwd: ROOT });
  await run('npm', ['pack', join(ROOT, 'build', 'package'), '--pack-destination', folder]);
  const tarball = join(folder, (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '');
  const consumer = join(folder, 'consumer');
  await mkdir(consumer);
  await writeFile(join(consumer, 'package.json'), '{"type":"module","private":true}\n');
  const flags = ['--engine-strict', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...flags, tarball], { cwd: consumer });
  const project = join(folder, 'project');
  await cp(consumer, project, { recursive: true, verbatimSymlinks: true });
  await mkdir(join(project, 'node_modules', '@types'));
  for (const name of TOOLS) await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name));
  provide('root', ROOT);
  provide('project', project);
  provide('tarball', tarball);
  provide('consumer', consumer);
  return () => rm(folder, { recursive: true, force: true });
}
