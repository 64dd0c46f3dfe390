import { type Command, Option } from 'commander';
import { describeMistake } from '../../settings/mistakes.js';
import type { DatabaseSettings } from '../../settings/settings.js';
import type { Database } from '../../storage/connection/pool.js';
import type { FeedReport } from '../../storage/feeds/feed-report.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT, worstOf } from '../context/exit.js';
import { readFeedSettings, readSchemas, type Schemas } from '../context/feed-settings.js';
import { runEach } from '../context/run-each.js';
import { openSchema, requireFeed, withConnection } from '../context/with-feed.js';
import { showStatus } from '../terminal/show-status.js';

const examples = `
Examples:
  $ scanfeed status
  The lag in seconds, for a script:
    $ scanfeed status --json | jq '.[0].lagSeconds'
  Refreshed every 5 seconds until Ctrl-C:
    $ watch -n 5 scanfeed status`;

interface Given {
  readonly feed?: string;
  readonly json?: true;
}

/** `scanfeed status`: shows the state of the feeds of a schema, read from the database alone. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('status')
    .description('Show the freshness and completeness of the data, the leader, and pending and quarantined entries.')
    .option('--json', 'print the status as JSON')
    .option('--feed <name>', 'only this feed')
    .addOption(new Option('--all', 'all feeds (default)').conflicts('feed'))
    .addHelpText('after', examples)
    .action((given: Given) => status(given, io));
}

async function status(given: Given, io: CommandProcess): Promise<void> {
  const { schemas, mistakes } = await schemasOf(given, io);
  for (const mistake of mistakes) io.note(`scanfeed: ${describeMistake(mistake)}\n`);
  const [first] = schemas;
  const codes =
    first === undefined ? [] : await withConnection(first, (database) => show(schemas, given, database, io));
  if (first === undefined && given.json) io.write('[]\n');
  else if (first === undefined && mistakes.length === 0) io.write('The feeds file lists no feed.\n');
  const failed = [...codes, ...(mistakes.length > 0 ? [EXIT.settings] : [])];
  if (failed.length > 0) throw new CommandFailure('the status is incomplete', worstOf(failed));
}

async function schemasOf({ feed }: Given, io: CommandProcess): Promise<Schemas> {
  if (feed === undefined) return readSchemas(io);
  const { database } = await readFeedSettings(io, { feed, need: ['feed', 'database'] });
  return { schemas: [database], mistakes: [] };
}

/**
 * Shows the feeds of each schema. Returns the exit codes of the schemas that could not be read.
 * @throws CommandFailure if none of them can be read
 */
async function show(
  schemas: readonly DatabaseSettings[],
  { feed, json }: Given,
  database: Database,
  io: CommandProcess,
): Promise<readonly number[]> {
  const reports: FeedReport[] = [];
  const texts: string[] = [];
  const failures: string[] = [];
  const codes = await runEach(
    schemas,
    async (settings) => {
      const ofSchema = await readReports(settings, feed, database);
      reports.push(...ofSchema);
      texts.push(showStatus(ofSchema, settings.schema, { now: io.clock.now(), columns: io.columns }));
    },
    ({ schema }, message) => failures.push(schemas.length === 1 ? message : `schema ${schema}: ${message}`),
  );
  if (codes.length === schemas.length) throw new CommandFailure(failures.join('\nscanfeed: '), worstOf(codes));
  io.write(json ? `${JSON.stringify(reports)}\n` : texts.join('\n'));
  for (const failure of failures) io.note(`scanfeed: ${failure}\n`);
  return codes;
}

/** @throws CommandFailure if there is no such feed */
async function readReports(
  settings: DatabaseSettings,
  feed: string | undefined,
  database: Database,
): Promise<readonly FeedReport[]> {
  const store = await openSchema(settings, database);
  if (feed !== undefined) await requireFeed(store, feed);
  return (await store.readFeedReports()).filter((report) => feed === undefined || report.feed === feed);
}
