import type { Command } from 'commander';
import { migrateSchema, prepareReaderRole, readerRoleHelp } from '../../daemon/prepare-schema.js';
import { type DatabaseSettings, SettingsError } from '../../settings/settings.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { hasFeedsFile, readSchemas } from '../context/feed-settings.js';

const examples = `
Examples:
  $ scanfeed migrate
  Over a direct connection, if DATABASE_URL points to a pooler:
    $ export SCANFEED_MIGRATION_DATABASE_URL=postgres://owner@db/invoices
    $ scanfeed migrate`;

/** `scanfeed migrate`: upgrades the schema to this release. Safe to run at any time, also several at once. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('migrate')
    .description('Apply missing migrations to the database schema.')
    .option('--json', 'print the applied migrations as JSON')
    .addHelpText('after', examples)
    .action(async ({ json }: { json?: true }) => {
      const { schemas, mistakes } = await readSchemas(io);
      const done: Migrated[] = [];
      for (const database of schemas) {
        const migrated = await migrate(database, io);
        if (!json) io.write(report(migrated));
        done.push(migrated);
      }
      if (json) io.write(`${JSON.stringify(hasFeedsFile(io) ? done : done[0])}\n`);
      if (mistakes.length > 0) throw new SettingsError(mistakes);
    });
}

interface Migrated {
  readonly schema: string;
  readonly applied: readonly string[];
  readonly readerRole: boolean;
}

async function migrate(settings: DatabaseSettings, io: CommandProcess): Promise<Migrated> {
  const applied = await migrateSchema(settings);
  const readerRole = await prepareReaderRole(settings);
  if (!readerRole) io.note(`${REFUSED}\n${readerRoleHelp(settings)}`);
  return { schema: settings.schema, applied, readerRole };
}

const REFUSED =
  'The reader role of the reports could not be created or granted its rights. Run this as a role that may:';

function report({ schema, applied }: Migrated): string {
  if (applied.length === 0) return `The schema ${schema} is up to date.\n`;
  return `Applied to the schema ${schema}:\n${applied.map((name) => `  ${name}\n`).join('')}`;
}
