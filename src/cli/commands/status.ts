import { type Command, Option } from 'commander';
import { describeMistake } from '../../settings/mistakes.js';
import type { Database } from '../../storage/connection/pool.js';
import type { FeedReport } from '../../storage/feeds/feed-report.js';
import type { OperatorStore } from '../../storage/operator-store.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT, explain, worstOf } from '../context/exit.js';
import { readFeedSettings, readSchemas } from '../context/feed-settings.js';
import { intervalOption } from '../context/parse-options.js';
import { runEach } from '../context/run-each.js';
import { openSchema, requireFeed, withConnection, withDatabase } from '../context/with-feed.js';
import { showStatus } from '../terminal/show-status.js';

const examples = `
Examples:
  $ scanfeed status
  The lag in seconds, for a script:
    $ scanfeed status --json | jq '.[0].lagSeconds'
  Refreshed every 5 seconds until Ctrl-C:
    $ scanfeed status --watch 5s`;

const WATCH_MS = 2_000;

interface Given {
  readonly feed?: string;
  readonly json?: true;
  /** Milliseconds; true without an interval. */
  readonly watch?: number | true;
}

/** `scanfeed status`: shows the state of the feeds of a schema, read from the database alone. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('status')
    .description('Show the freshness and completeness of the data, the leader, and pending and quarantined entries.')
    .option('--json', 'print the status as JSON; with --watch one line per refresh')
    .option('--watch [interval]', 'refresh every 2s, or at the given interval', intervalOption)
    .option('--feed <name>', 'only this feed')
    .addOption(new Option('--all', 'all feeds (default)').conflicts('feed'))
    .addHelpText('after', examples)
    .action((given: Given) => (given.feed === undefined ? showAll(given, io) : showOne(given.feed, given, io)));
}

async function showOne(name: string, given: Given, io: CommandProcess): Promise<void> {
  const { database: settings } = await readFeedSettings(io, { feed: name, need: ['feed', 'database'] });
  await withDatabase(settings, async (store) => {
    await requireFeed(store, name);
    const read = async () => (await store.readFeedReports()).filter(({ feed }) => feed === name);
    await show([{ schema: settings.schema, read }], given, io);
  });
}

async function showAll(given: Given, io: CommandProcess): Promise<void> {
  const { schemas, mistakes } = await readSchemas(io);
  for (const mistake of mistakes) io.note(`scanfeed: ${describeMistake(mistake)}\n`);
  const [first] = schemas;
  const shownIn = (database: Database) =>
    schemas.map((settings) => ({
      schema: settings.schema,
      read: async () => (await openSchema(settings, database)).readFeedReports(),
    }));
  const codes =
    first === undefined ? [] : await withConnection(first, (database) => show(shownIn(database), given, io));
  if (first === undefined && given.json) io.write('[]\n');
  else if (first === undefined && mistakes.length === 0) io.write('The feeds file lists no feed.\n');
  const failed = [...codes, ...(mistakes.length > 0 ? [EXIT.settings] : [])];
  if (failed.length > 0) throw new CommandFailure('the status is incomplete', worstOf(failed));
}

interface Shown {
  readonly schema: string;
  readonly read: OperatorStore['readFeedReports'];
}

/**
 * Shows the status once or, with `--watch`, repeatedly. Returns the exit codes of the schemas that could not be read.
 * @throws CommandFailure if none can be read
 */
async function show(schemas: readonly Shown[], { json, watch }: Given, io: CommandProcess): Promise<readonly number[]> {
  const render = () => renderAll(schemas, json === true, io);
  if (watch !== undefined) {
    await watchStatus(render, { everyMs: watch === true ? WATCH_MS : watch, json: json === true }, io);
    return [];
  }
  const { text, failures, codes } = await render();
  io.write(text);
  if (failures !== '') io.note(failures);
  return codes;
}

interface Rendered {
  readonly text: string;
  /** A line for each schema that could not be read. */
  readonly failures: string;
  readonly codes: readonly number[];
}

/** @throws CommandFailure if none of the schemas can be read */
async function renderAll(schemas: readonly Shown[], json: boolean, io: CommandProcess): Promise<Rendered> {
  const reports: FeedReport[] = [];
  const texts: string[] = [];
  const failures: string[] = [];
  const codes = await runEach(
    schemas,
    async ({ schema, read }) => {
      const ofSchema = await read();
      reports.push(...ofSchema);
      texts.push(showStatus(ofSchema, schema, { now: io.clock.now(), columns: io.columns }));
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

/**
 * Refreshes the status until the process ends or its output is closed. A later outage is shown in place of the status.
 * @throws CommandFailure if the database is unavailable at the start
 */
async function watchStatus(
  render: () => Promise<Rendered>,
  { everyMs, json }: { readonly everyMs: number; readonly json: boolean },
  io: CommandProcess,
): Promise<void> {
  const gone = new AbortController();
  io.onGone?.(() => gone.abort());
  const draws = io.columns !== null && !json;
  let isFirst = true;
  while (!gone.signal.aborted) {
    const { text, failures } = await render().catch((error: unknown): Pick<Rendered, 'text' | 'failures'> => {
      const { message, exitCode } = explain(error);
      if (isFirst || exitCode !== EXIT.tryAgain) throw error;
      return { text: '', failures: `scanfeed: ${message}\n` };
    });
    isFirst = false;
    if (draws) io.writeControls(drawn(text + failures));
    else {
      if (text !== '') io.write(json ? text : `${text}\n`);
      if (failures !== '') io.note(failures);
    }
    await io.clock.sleep(everyMs, gone.signal);
  }
}

/** Returns the control codes that redraw the block from the upper left corner and clear the rest of the screen. */
function drawn(block: string): string {
  return `\x1b[H${block.replaceAll('\n', '\x1b[K\n')}\x1b[J`;
}
