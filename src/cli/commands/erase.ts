import type { Command } from 'commander';
import type { ErasedRun } from '../../storage/runs/deleted-runs.js';
import { type CommandProcess, confirm, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { readSchemaSettings } from '../context/feed-settings.js';
import { withDatabase } from '../context/with-feed.js';
import { counted, printable } from '../terminal/format.js';
import { withProgress } from '../terminal/progress.js';

interface Given extends CommonOptions {
  readonly scanId: readonly string[];
}

const examples = `
Erased runs cannot be restored. No revision of them is stored again, even if the
service delivers one. The scan ids are kept in deleted_runs, so that readers
notice the deletion. Backups and the service are not affected.

Examples:
  $ scanfeed erase --scan-id 6083ce9e-b870-4e2b-8bbd-88dac083ce9e
  What would be deleted:
    $ scanfeed erase --dry-run --scan-id 6083ce9e-b870-4e2b-8bbd-88dac083ce9e
  Several at once:
    $ scanfeed erase --yes --scan-id 6083ce9e --scan-id 19fa022e`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('erase')
    .description('Delete runs with their history and quarantine entries, and never store them again.')
    .requiredOption('--scan-id <ids...>', 'ids of the runs; repeatable');
  withOptions(command, 'yes', 'dryRun', 'settings', 'quiet', 'json')
    .addHelpText('after', examples)
    .action((options: Given) => erase(options, io));
}

async function erase(options: Given, io: CommandProcess): Promise<void> {
  const { scanId, feed, dryRun } = options;
  if (scanId.includes('')) throw new CommandFailure('--scan-id must not be empty', EXIT.usage);
  const settings = await readSchemaSettings(io, feed);
  await withDatabase(settings, async ({ deletedRuns }) => {
    const scanIds = [...new Set(scanId)];
    const plan = `${counted(scanIds.length, 'run', 'runs')} will be deleted from the schema ${settings.schema} with all revisions, and never\nstored again. This cannot be undone.\n`;
    if (!dryRun) await confirm(io, options, plan, 'Erase?');
    const state = `${dryRun ? 'counting' : 'erasing'} ${counted(scanIds.length, 'run', 'runs')}`;
    const erased = await withProgress(io, options, state, () =>
      dryRun ? deletedRuns.countErased(scanIds) : deletedRuns.erase(scanIds),
    );
    io.write(options.json ? `${JSON.stringify(erased)}\n` : erased.map(describe).join(''));
    if (dryRun) io.note('Nothing was erased: this is what would be.\n');
  });
}

function describe({ scanId, stored, revisions, quarantined }: ErasedRun): string {
  const parts = [
    stored ? 'the run' : 'not stored',
    revisions > 0 ? counted(revisions, 'earlier revision', 'earlier revisions') : null,
    quarantined > 0 ? counted(quarantined, 'quarantined entry', 'quarantined entries') : null,
  ];
  return `${printable(scanId)}: ${parts.filter((part) => part !== null).join(', ')}\n`;
}
