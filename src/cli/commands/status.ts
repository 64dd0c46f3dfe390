import type { Command } from 'commander';
import { readSettings } from '../../settings/settings.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { EXIT, explain } from '../context/exit.js';
import { intervalOption } from '../context/parse-options.js';
import { withDatabase } from '../context/with-feed.js';
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
    .addHelpText('after', examples)
    .action(async ({ json, watch }: Given) => {
      const { database: settings } = readSettings(io.env, { need: ['database'] });
      await withDatabase(settings, async ({ readFeedReports }) => {
        const show = async (columns: number | null) => {
          const reports = await readFeedReports();
          return json
            ? `${JSON.stringify(reports)}\n`
            : showStatus(reports, settings.schema, { now: io.clock.now(), columns });
        };
        if (watch === undefined) io.write(await show(io.columns));
        else await watchStatus(show, { everyMs: watch === true ? WATCH_MS : watch, json: json === true }, io);
      });
    });
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
