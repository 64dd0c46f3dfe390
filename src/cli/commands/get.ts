import type { Command } from 'commander';
import type { RawRun } from '../../sync/ports/index.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { entryOption, readFeedSettings } from '../context/feed-settings.js';
import type { FeedOptions } from '../context/with-feed.js';
import { withRetries } from '../context/with-retries.js';
import { withService } from '../context/with-service.js';
import { printable } from '../terminal/format.js';
import { describeRun, markdownOf } from '../terminal/show-run.js';

interface Given extends FeedOptions {
  readonly markdown?: true;
}

const examples = `
Shows document content: formatted on a terminal, otherwise the JSON of the
service, byte for byte. No database is needed.

Examples:
  $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e
  $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e | jq .data
  $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e --markdown >invoice.md`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('get')
    .description('Show one run with its full result, as the service returns it now.')
    .argument('<scanId>', 'id of the run')
    .option('--markdown', 'show the recognized markdown as text')
    .addOption(entryOption())
    .option('--json', 'print the JSON as the service sends it')
    .addHelpText('after', examples)
    .action((scanId: string, options: Given) => get(scanId, options, io));
}

async function get(scanId: string, given: Given, io: CommandProcess): Promise<void> {
  const { service: settings } = await readFeedSettings(io, { feed: given.feed, need: ['service'] });
  const { signal } = new AbortController(); // signals end the process directly: nothing needs a cleanup
  const run = await withService(settings, 1, io.clock, (service) => {
    const request = () => service.readRun(scanId, { markdown: given.markdown === true }, signal);
    return withRetries(request, { clock: io.clock, onPause: (said) => io.note(`${said}\n`) });
  });
  show(run, given, io);
}

function show(run: RawRun, { markdown, json }: Given, io: CommandProcess): void {
  if (markdown && !json) io.write(requireMarkdown(run));
  else if (!json && io.columns !== null) io.write(describeRun(run));
  else {
    io.write(run.body);
    io.write('\n');
  }
}

function requireMarkdown(answer: RawRun): string {
  const markdown = markdownOf(answer);
  if (markdown !== null) return `${markdown}\n`;
  const { scanId, status } = answer.run;
  const processing = status === 'processing';
  throw new CommandFailure(
    `the run ${printable(String(scanId))} has no markdown${processing ? ' yet: it is still processing' : ''}`,
    processing ? EXIT.tryAgain : EXIT.failed,
  );
}
