import type { Command } from 'commander';
import { migrateSchema, prepareReaderRole, readerRoleHelp } from '../../daemon/prepare-schema.js';
import { readSettings } from '../../settings/settings.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';

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
      const { database } = readSettings(io.env, { need: ['database'] });
      const applied = await migrateSchema(database);
      const readerRole = await prepareReaderRole(database);
      io.write(
        json
          ? `${JSON.stringify({ schema: database.schema, applied, readerRole })}\n`
          : report(database.schema, applied),
      );
      if (!readerRole) io.note(`${REFUSED}\n${readerRoleHelp(database)}`);
    });
}

const REFUSED =
  'The reader role of the reports could not be created or granted its rights. Run this as a role that may:';

function report(schema: string, applied: readonly string[]): string {
  if (applied.length === 0) return `The schema ${schema} is up to date.\n`;
  return `Applied to the schema ${schema}:\n${applied.map((name) => `  ${name}\n`).join('')}`;
}
