import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Compiles a folder or file of `src/` with all it imports, for tests that run it as a process of its own (and kill it).
 * The result lies below `node_modules`, where it finds the packages; `directory` stands for `src`.
 *
 * @param source From the root of the project: `src/cli/embedded-postgres`.
 */
export async function compile(source: string): Promise<{ directory: string; remove(): Promise<void> }> {
  const cache = join(root, 'node_modules', '.cache');
  await mkdir(cache, { recursive: true });
  const directory = await mkdtemp(join(cache, 'scanfeed-test-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  const config = {
    extends: join(root, 'tsconfig.build.json'),
    compilerOptions: {
      outDir: directory,
      rootDir: join(root, 'src'),
      declaration: false,
      typeRoots: [join(root, 'node_modules/@types')],
    },
    include: [join(root, source)],
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(config));
  await writeFile(join(directory, 'package.json'), JSON.stringify({ type: 'module' }));
  try {
    await promisify(execFile)(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', directory]);
  } catch (error) {
    await remove();
    throw new Error(`${source} does not compile:\n${(error as { stdout?: string }).stdout ?? String(error)}`);
  }
  return { directory, remove };
}
