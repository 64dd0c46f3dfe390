import { type Command, Option } from 'commander';
import { describeMistake } from '../../settings/mistakes.js';
import type { FeedReport } from '../../storage/feeds/feed-report.js';
import type { OperatorStore } from '../../storage/operator-store.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT, explain, worstOf } from '../context/exit.js';
import { readFeedSettings, readSchemas } from '../context/feed-settings.js';
import { intervalOption } from '../context/parse-options.js';
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

/** Shows all feeds of the schema or, with a feeds file, of all schemas that it names. */
async function showAll(given: Given, io: CommandProcess): Promise<void> {
  const { schemas, mistakes } = await readSchemas(io);
  for (const mistake of mistakes) io.note(`scanfeed: ${describeMistake(mistake)}\n`);
  const codes: number[] = mistakes.length > 0 ? [EXIT.settings] : [];
  const [first, ...others] = schemas;
  if (first !== undefined) {
    await withConnection(first, async (database) => {
      const opened: Shown[] = [];
      for (const settings of schemas) {
        try {
          const { readFeedReports: read } = await openSchema(settings, database);
          opened.push({ schema: settings.schema, read });
        } catch (error) {
          if (others.length === 0) throw error;
          const { message, exitCode } = explain(error);
          io.note(`scanfeed: schema ${settings.schema}: ${message}\n`);
          codes.push(exitCode);
        }
      }
      await show(opened, given, io);
    });
  } else await show([], given, io);
  if (codes.length > 0) throw new CommandFailure('the status is incomplete', worstOf(codes));
}

/** A schema, and the function that reads its feed reports. */
interface Shown {
  readonly schema: string;
  readonly read: OperatorStore['readFeedReports'];
}

async function show(schemas: readonly Shown[], { json, watch }: Given, io: CommandProcess): Promise<void> {
  const render = async (columns: number | null) => {
    const parts: string[] = [];
    const all: FeedReport[] = [];
    for (const { schema, read } of schemas) {
      const reports = await read();
      all.push(...reports);
      parts.push(showStatus(reports, schema, { now: io.clock.now(), columns }));
    }
    if (parts.length === 0) parts.push('The feeds file lists no feed.\n');
    return json ? `${JSON.stringify(all)}\n` : parts.join('\n');
  };
  if (watch === undefined) io.write(await render(io.columns));
  else await watchStatus(render, { everyMs: watch === true ? WATCH_MS : watch, json: json === true }, io);
}

/** Refreshes the status until the process ends or its output is closed. An outage is shown in place of the status. */
async function watchStatus(
  show: (columns: number | null) => Promise<string>,
  { everyMs, json }: { readonly everyMs: number; readonly json: boolean },
  io: CommandProcess,
): Promise<void> {
  const gone = new AbortController();
  io.onGone?.(() => gone.abort());
  while (!gone.signal.aborted) {
    const draws = io.columns !== null && !json;
    try {
      const block = await show(io.columns);
      io.write(draws ? drawn(block) : json ? block : `${block}\n`);
    } catch (error) {
      const { message, exitCode } = explain(error);
      if (exitCode !== EXIT.tryAgain) throw error;
      if (draws) io.write(drawn(`scanfeed: ${message}\n`));
      else io.note(`scanfeed: ${message}\n`);
    }
    await io.clock.sleep(everyMs, gone.signal);
  }
}

/** Returns the control codes that redraw the block from the upper left corner and clear the rest of the screen. */
function drawn(block: string): string {
  return `\x1b[H${block.replaceAll('\n', '\x1b[K\n')}\x1b[J`;
}
