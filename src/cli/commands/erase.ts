import type { Command } from 'commander';
import type { ErasedRun } from '../../storage/runs/deleted-runs.js';
import { type CommandProcess, confirm, dryRunOption, thisProcess } from '../context/command-process.js';
import { entryOption, readSchemaSettings } from '../context/feed-settings.js';
import { withDatabase } from '../context/with-feed.js';
import { counted, printable } from '../terminal/format.js';
import { type ProgressOptions, quietOption, withProgress } from '../terminal/progress.js';

interface Given extends ProgressOptions {
  readonly scanId: readonly string[];
  readonly feed?: string;
  readonly yes?: true;
  readonly dryRun?: true;
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
  program
    .command('erase')
    .description('Delete runs with their history and quarantine entries, and never store them again.')
    .requiredOption('--scan-id <id>', 'id of the run; repeatable', several)
    .option('--yes', 'do not ask')
    .addOption(dryRunOption())
    .addOption(entryOption())
    .addOption(quietOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples)
    .action((options: Given) => erase(options, io));
}

function several(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

async function erase({ scanId, feed, yes, dryRun, ...options }: Given, io: CommandProcess): Promise<void> {
  const settings = await readSchemaSettings(io, feed);
  await withDatabase(settings, async ({ deletedRuns }) => {
    const scanIds = [...new Set(scanId)];
    const plan = `${counted(scanIds.length, 'run', 'runs')} will be deleted from the schema ${settings.schema} with all revisions, and never\nstored again. This cannot be undone.\n`;
    if (!dryRun) await confirm(io, { plan, question: 'Erase?', yes: yes === true });
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
