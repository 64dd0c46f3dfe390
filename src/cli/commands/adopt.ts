import type { Command } from 'commander';
import { type CommandProcess, confirm, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { feedOption, readFeedSettings } from '../context/feed-settings.js';
import { type FeedOptions, withFeed } from '../context/with-feed.js';

interface Given extends FeedOptions {
  readonly yes?: true;
}

const examples = `
A daemon holds if its base URL differs from the stored address, so that two
applications with the same feed name cannot mix their data. If the service has
moved to another address, adopt the new address.

Examples:
  $ SCANFEED_BASE_URL=https://recognition.example/v1 scanfeed adopt
  Without confirmation, if the configured address is the new one:
    $ scanfeed adopt --yes`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('adopt')
    .description("Assign the feed's stored position to the service at the configured base URL.")
    .option('--yes', 'do not ask')
    .addOption(feedOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples)
    .action((options: Given) => adopt(options, io));
}

async function adopt(options: Given, io: CommandProcess): Promise<void> {
  const { service } = await readFeedSettings(io, { feed: options.feed, need: ['feed', 'service'] });
  const to = service.baseUrl;
  await withFeed(io, options, async ({ feeds, feed: { name, baseUrl: from } }) => {
    const done = (changed: boolean, said: string) =>
      io.write(options.json ? `${JSON.stringify({ feed: name, from, to, changed })}\n` : `${said}\n`);
    if (from === to) return done(false, `The feed ${name} already belongs to ${to}.`);
    const plan = `Feed ${name}
  from: ${from}
  to:   ${to}
Its position and its runs will be assigned to the service at the new address. If
that is a different service or organization, use another feed name or schema.
`;
    await confirm(io, { plan, question: 'Is it the same service?', yes: options.yes === true });
    if (!(await feeds.adopt(name, { from, baseUrl: to }))) {
      throw new CommandFailure(
        `the address of the feed ${name} was changed in the meantime; check it and try again`,
        EXIT.tryAgain,
      );
    }
    done(true, `The feed ${name} belongs to ${to} now. A daemon with this base URL continues within a minute.`);
  });
}
