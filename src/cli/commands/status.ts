import { type Command, Option } from 'commander';
import { describeMistake } from '../../settings/mistakes.js';
import type { DatabaseSettings } from '../../settings/settings.js';
import type { Database } from '../../storage/connection/pool.js';
import type { FeedReport } from '../../storage/operator/feed-report.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import type { CommonOptions } from '../context/common-options.js';
import { CommandFailure, EXIT, explain, worstOf } from '../context/exit.js';
import { readFeedSettings, readSchemas, type Schemas } from '../context/feed-settings.js';
import { intervalOption } from '../context/parse-options.js';
import { runEach } from '../context/run-each.js';
import { openSchema, requireFeed, withConnection } from '../context/with-feed.js';
import { showStatus } from '../terminal/show-status.js';

const examples = `
Examples:
  $ scanfeed status
  The lag in seconds, for a script:
    $ scanfeed status --json | jq '.[0].lagSeconds'
  Refreshed every 5 seconds until Ctrl-C:
    $ scanfeed status --watch 5s`;

interface Given extends CommonOptions {
  /** Interval between refreshes, milliseconds. */
  readonly watch?: number;
}

/** `scanfeed status`: shows the state of the feeds of a schema, read from the database alone. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('status')
    .description('Show the freshness and completeness of the data, the leader, and pending and quarantined entries.')
    .option('--json', 'print the status as JSON; with --watch one line per refresh')
    .addOption(
      new Option('--watch [interval]', 'refresh every 2s, or at the given interval')
        .preset('2s')
        .argParser(intervalOption),
    )
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
 * Shows the status once or, with `--watch`, until the process ends or its output is closed. A later outage is shown in place of the
 * status. Returns the exit codes of the schemas that could not be read.
 * @throws CommandFailure if none can be read at the start
 */
async function show(
  schemas: readonly DatabaseSettings[],
  given: Given,
  database: Database,
  io: CommandProcess,
): Promise<readonly number[]> {
  for (let isFirst = true; ; isFirst = false) {
    const { text, failures, codes } = await render(schemas, given, database, io).catch((error): Rendered => {
      const { message, exitCode } = explain(error);
      if (isFirst || exitCode !== EXIT.tryAgain) throw error;
      return { text: '', failures: `scanfeed: ${message}\n`, codes: [] };
    });
    const isWatching = given.watch !== undefined;
    if (isWatching && io.columns !== null && !given.json) io.writeControls(drawn(text + failures));
    else {
      if (text !== '') io.write(isWatching && !given.json ? `${text}\n` : text);
      if (failures !== '') io.note(failures);
    }
    if (given.watch === undefined) return codes;
    if (!(await io.written())) return [];
    await io.clock.sleep(given.watch, new AbortController().signal);
  }
}

interface Rendered {
  readonly text: string;
  /** A line for each schema that could not be read. */
  readonly failures: string;
  readonly codes: readonly number[];
}

/** @throws CommandFailure if none of the schemas can be read */
async function render(
  schemas: readonly DatabaseSettings[],
  { feed, json }: Given,
  database: Database,
  io: CommandProcess,
): Promise<Rendered> {
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
  if (codes.length === schemas.length) {
    for (const failure of failures.slice(1)) io.note(`scanfeed: ${failure}\n`);
    throw new CommandFailure(failures[0] ?? '', worstOf(codes));
  }
  const text = json ? `${JSON.stringify(reports)}\n` : texts.join('\n');
  return { text, failures: failures.map((failure) => `scanfeed: ${failure}\n`).join(''), codes };
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

/** Returns the control codes that redraw the block from the upper left corner and clear the rest of the screen. */
function drawn(block: string): string {
  return `\x1b[H${block.replaceAll('\n', '\x1b[K\n')}\x1b[J`;
}
