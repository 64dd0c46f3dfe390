import type { Command } from 'commander';
import { migrateSchema, prepareReaderRole, readerRoleHelp } from '../../daemon/prepare-schema.js';
import { feedsFilePath } from '../../settings/feeds-file.js';
import { type DatabaseSettings, readSettings, SettingsError } from '../../settings/settings.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, worstOf } from '../context/exit.js';
import { readSchemas, withHome } from '../context/feed-settings.js';
import { runEach } from '../context/run-each.js';

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
      if (feedsFilePath(io.env) !== null) return migrateAll(json === true, io);
      const settings = readSettings(io.env, { need: ['database'] });
      const migrated = await migrate(settings.database, io);
      io.write(json ? `${JSON.stringify(migrated)}\n` : report(migrated));
    });
}

/**
 * Migrates the schemas of all feeds of the feeds file, and the schema of the processes. After a failure, the next schema follows.
 * @throws SettingsError if an entry is invalid, so that its schema is not known
 * @throws CommandFailure with the worst exit code if it failed for a schema
 */
async function migrateAll(json: boolean, io: CommandProcess): Promise<void> {
  const { schemas: ofFeeds, mistakes } = await readSchemas(io);
  const schemas = withHome(ofFeeds);
  const results: object[] = [];
  const codes = await runEach(
    schemas,
    async (settings) => {
      const result = await migrate(settings, io);
      results.push({ schema: settings.schema, result, failure: null });
      if (!json) io.write(report(result));
    },
    ({ schema }, failure) => {
      results.push({ schema, result: null, failure });
      if (!json) io.note(`scanfeed: schema ${schema}: ${failure}\n`);
    },
  );
  if (json) io.write(`${JSON.stringify(results)}\n`);
  if (mistakes.length > 0) throw new SettingsError(mistakes);
  if (codes.length > 0) {
    throw new CommandFailure(`failed for ${codes.length} of ${schemas.length} schemas`, worstOf(codes));
  }
}

interface Migrated {
  readonly schema: string;
  readonly applied: readonly string[];
  /** Whether the reader role can read the reports; null: none is named. */
  readonly readerRole: boolean | null;
}

async function migrate(settings: DatabaseSettings, io: CommandProcess): Promise<Migrated> {
  const applied = await migrateSchema(settings);
  const { schema, readerRole: role } = settings;
  const readerRole = role === null ? null : await prepareReaderRole(settings, role);
  if (readerRole === false && role !== null) io.note(`${REFUSED}\n${readerRoleHelp(schema, role)}`);
  return { schema, applied, readerRole };
}

const REFUSED =
  'The reader role of the reports could not be created or granted its privileges. Run this as a database administrator:';

function report({ schema, applied }: Migrated): string {
  if (applied.length === 0) return `The schema ${schema} is up to date.\n`;
  return `Applied to the schema ${schema}:\n${applied.map((name) => `  ${name}\n`).join('')}`;
}
