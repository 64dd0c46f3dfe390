import { type Command, Option } from 'commander';
import type { SettingsFor } from '../../settings/settings.js';
import type { QuarantinedEntry } from '../../storage/operator/quarantined-entries.js';
import { QUARANTINE_STATES, type QuarantineState } from '../../storage/tables/schema.js';
import { type CommandProcess, confirm, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { forChosenFeeds } from '../context/for-each-feed.js';
import { idOption, intervalOption, numberOption } from '../context/parse-options.js';
import { type FeedCommandContext, withFeed, withFeedOf } from '../context/with-feed.js';
import { type Replayed, replayEntry } from '../results/replay-entry.js';
import { counted, formatSeconds, formatTime, printable } from '../terminal/format.js';
import { withProgress } from '../terminal/progress.js';
import { type Column, table } from '../terminal/table.js';

/** `scanfeed quarantine`: manages the entries that could not be stored. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('quarantine')
    .description('List, show, replay or discard entries that could not be stored, or let a feed continue without them.')
    .addHelpText('afterAll', examples);
  const listing = command
    .command('list')
    .description('List entries, newest first, without their content.')
    .addOption(
      new Option('--state <state>', 'only entries in this state')
        .choices([...QUARANTINE_STATES, 'all'])
        .default('open'),
    )
    .option('--limit <number>', 'maximum number of entries', numberOption(1), 50);
  withOptions(listing, 'feed', 'allFeeds', 'json').action((options: ListOptions) =>
    forChosenFeeds(io, options, ['database'], (settings, part) => list(settings, options, part)),
  );
  const showing = command
    .command('show')
    .description('Show why an entry is in quarantine.')
    .argument('<id>', 'id of the entry, as listed', idOption)
    .option('--payload', "write only the entry's bytes as received to stdout (document content)");
  withOptions(showing, 'feed', 'json').action((id: string, options: ShowOptions) => show(id, options, io));
  const replaying = command
    .command('replay')
    .description('Check entries again and store those that pass. The others stay in quarantine.')
    .argument('[ids...]', 'their ids, as listed', idsOption)
    .option('--all', 'all open entries');
  withOptions(replaying, 'feed', 'quiet', 'json').action((ids: readonly string[], options: CommonOptions) =>
    replay(ids, options, io),
  );
  const discarding = command
    .command('discard')
    .description('Discard open entries: they are no longer counted, and stay discarded if delivered again.')
    .argument('[ids...]', 'their ids, as listed', idsOption)
    .option('--all', 'all open entries');
  withOptions(discarding, 'yes', 'dryRun', 'feed', 'json').action((ids: readonly string[], options: CommonOptions) =>
    discard(ids, options, io),
  );
  const accepting = command
    .command('accept')
    .description('Let a feed continue although most of its entries are unusable.')
    .addOption(new Option('--for <duration>', 'for this long, such as 1h, at most 24h').argParser(intervalOption))
    .option('--stop', 'hold again from now on');
  withOptions(accepting, 'yes', 'feed', 'json')
    .addHelpText('after', ACCEPTING.trimEnd())
    .action((options: AcceptOptions) => accept(options, io));
}

/** What accepting unusable entries means, for the help and the question. */
const ACCEPTING = `
Unusable entries go to quarantine, even if they are the majority, and the feed
does not hold. They are missing from reports until the service delivers them in
usable form, or \`quarantine replay --all\` stores them with a release that can
read them. Other entries are stored as always.
`;

const examples = `
Examples:
  $ scanfeed quarantine list
  $ scanfeed quarantine show 12
  The entry as received (document content!), formatted:
    $ scanfeed quarantine show 12 --payload | jq .
  After an update or a repair, store the entries that pass now:
    $ scanfeed quarantine replay --all
  $ scanfeed quarantine discard 12 13
  At night, if the service sends entries that cannot be stored:
    $ scanfeed quarantine accept --for 8h
    $ scanfeed quarantine accept --stop`;

interface ListOptions extends CommonOptions {
  readonly state: QuarantineState | 'all';
  readonly limit: number;
}

async function list(
  settings: SettingsFor<'feed' | 'database'>,
  { state, limit, json }: ListOptions,
  io: CommandProcess,
): Promise<void> {
  await withFeedOf(settings, async ({ quarantine, feed: { name } }) => {
    const wanted = state === 'all' ? null : state;
    const entries = await quarantine.list(name, { state: wanted, limit });
    if (json) return io.write(`${JSON.stringify(entries)}\n`);
    if (entries.length === 0) return io.write(`No ${wanted ?? ''} entries of the feed ${name}.\n`.replace('  ', ' '));
    io.write(table(entries, LIST));
    const total = await quarantine.count(name, wanted);
    if (total > entries.length) io.note(`${entries.length} of ${total}; see --limit\n`);
  });
}

const LIST: readonly Column<QuarantinedEntry>[] = [
  { head: 'ID', cell: ({ id }) => id, right: true },
  { head: 'STATE', cell: ({ state }) => state },
  { head: 'REASON', cell: ({ reason }) => reason },
  { head: 'LAST SEEN', cell: ({ lastSeenAt }) => formatTime(lastSeenAt) },
  { head: 'SEEN', cell: ({ timesSeen }) => String(timesSeen), right: true },
  { head: 'REV', cell: ({ revision }) => String(revision ?? '-'), right: true },
  { head: 'SCAN', cell: ({ scanId }) => scanId ?? '-' },
];

interface ShowOptions extends CommonOptions {
  readonly payload?: true;
}

async function show(id: string, { feed, payload, json }: ShowOptions, io: CommandProcess) {
  await withFeed(io, { feed }, async (work) => {
    const [entry] = await requireEntries(work, [id]);
    if (payload) {
      const bytes = await work.quarantine.readPayload(work.feed.name, id);
      io.write(bytes ?? '');
    } else if (entry !== undefined) io.write(json ? `${JSON.stringify(entry)}\n` : describe(entry));
  });
}

function describe(entry: QuarantinedEntry): string {
  const { firstSeenAt, lastSeenAt, timesSeen } = entry;
  const lines: readonly (readonly [string, string])[] = [
    ['Entry', entry.id],
    ['State', entry.state],
    ['Reason', `${entry.reason}: ${entry.detail}`],
    ['Scan', entry.scanId ?? 'unusable'],
    ['Revision', String(entry.revision ?? 'unusable')],
    ['Seen', `${counted(timesSeen, 'time', 'times')}, ${formatTime(firstSeenAt)} to ${formatTime(lastSeenAt)}`],
    ['Size', `${entry.payloadBytes} bytes; --payload shows them`],
  ];
  return lines.map(([name, value]) => `${`${name}:`.padEnd(10)}${printable(value)}\n`).join('');
}

async function replay(ids: readonly string[], options: CommonOptions, io: CommandProcess) {
  const { feed, json } = options;
  await withFeed(io, { feed }, async (work) => {
    const chosen = await choose(work, ids, options.all);
    const entries = await requireEntries(work, chosen);
    const stored = entries.find(({ state }) => state === 'repaired' || state === 'replayed');
    if (stored !== undefined) throw new CommandFailure(`entry ${stored.id} is ${stored.state}: its run is stored`);
    const results: Replayed[] = [];
    const figures = () => ({ done: results.length, total: entries.length, what: 'entries replayed' });
    await withProgress(io, options, figures(), async ({ show }) => {
      for (const entry of entries) {
        const result = await replayEntry(work, entry, io.clock);
        if (result !== null) results.push(result);
        show(figures());
      }
    }).catch((error) => {
      if (results.length > 0) print(results, json, io);
      throw error;
    });
    print(results, json, io);
    requireAllValid(results);
  });
}

function print(results: readonly Replayed[], json: true | undefined, io: CommandProcess): void {
  if (json) io.write(`${JSON.stringify(results)}\n`);
  else if (results.length === 0) io.write('Nothing to replay.\n');
  else io.write(results.map(describeReplayed).join(''));
}

function requireAllValid(results: readonly Replayed[]): void {
  const bad = results.filter(({ outcome }) => outcome === 'still_bad').length;
  if (bad > 0)
    throw new CommandFailure(
      `${bad} of ${counted(results.length, 'entry', 'entries')} still invalid, kept in quarantine`,
    );
}

const OUTCOMES: Readonly<Record<Replayed['outcome'], string>> = {
  stored: 'stored',
  present: 'was already stored',
  overtaken: 'discarded: a newer revision is stored, or the run was erased or is past the retention',
  still_bad: 'still invalid',
};

function describeReplayed({ id, scanId, revision, outcome, reason, detail }: Replayed): string {
  const why = reason === null ? '' : ` (${reason}: ${detail})`;
  return `${id}: scan ${printable(scanId ?? '-')}, revision ${revision ?? '-'}: ${OUTCOMES[outcome]}${why}\n`;
}

async function discard(
  ids: readonly string[],
  { feed, all, dryRun, json, ...options }: CommonOptions,
  io: CommandProcess,
): Promise<void> {
  await withFeed(io, { feed }, async (work) => {
    const chosen = await choose(work, ids, all);
    const entries = await requireEntries(work, chosen);
    const settled = entries.find(({ state }) => state !== 'open');
    if (settled !== undefined) throw new CommandFailure(`entry ${settled.id} is not open: it is ${settled.state}`);
    const plan = `${counted(entries.length, 'entry', 'entries')} of the feed ${work.feed.name} will be discarded. Discarded entries\nstay missing from reports, even if they are delivered again.\n\`quarantine replay ID\` can still store them.\n`;
    if (dryRun) {
      io.write(json ? `${JSON.stringify({ discarded: chosen })}\n` : table(entries, LIST));
      return io.note('Nothing was discarded: these would be.\n');
    }
    if (entries.length > 0) await confirm(io, options, plan, 'Discard them?');
    const discarded = await work.quarantine.discard(work.feed.name, chosen);
    io.write(json ? `${JSON.stringify({ discarded })}\n` : `Discarded: ${discarded.length}.\n`);
  });
}

interface AcceptOptions extends CommonOptions {
  readonly for?: number;
  readonly stop?: true;
}

async function accept({ for: forMs, stop, feed: named, json, ...options }: AcceptOptions, io: CommandProcess) {
  if ((forMs === undefined) !== (stop === true)) throw new CommandFailure('give --for or --stop', EXIT.usage);
  await withFeed(io, { feed: named }, async ({ quarantine, feed: { name } }) => {
    const plan = `Feed ${name} for ${formatSeconds((forMs ?? 0) / 1_000)}:${ACCEPTING}`;
    if (!stop) await confirm(io, options, plan, 'Continue without them?');
    const until = await quarantine.accept(name, forMs ?? null);
    const said =
      until === null
        ? `The feed ${name} holds if most of its entries are unusable.\n`
        : `The feed ${name} accepts unusable entries until ${formatTime(until)}. If it holds, it continues within 30 s.\n`;
    io.write(json ? `${JSON.stringify({ feed: name, acceptsBadUntil: until })}\n` : said);
  });
}

/** Returns the given ids, or those of all open entries. */
async function choose(
  { quarantine, feed }: FeedCommandContext,
  ids: readonly string[],
  all: true | undefined,
): Promise<readonly string[]> {
  if ((all === true) === ids.length > 0) throw new CommandFailure('give ids or --all', EXIT.usage);
  return all ? quarantine.openIds(feed.name) : [...new Set(ids)];
}

async function requireEntries(
  { quarantine, feed }: FeedCommandContext,
  ids: readonly string[],
): Promise<readonly QuarantinedEntry[]> {
  const entries = await quarantine.find(feed.name, ids);
  const found = new Set(entries.map(({ id }) => id));
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return entries;
  const named = missing.length === 1 ? `no entry ${missing[0]}` : `no entries ${missing.join(', ')}`;
  throw new CommandFailure(`there is ${named} in the quarantine of the feed ${feed.name}`);
}

function idsOption(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, idOption(text)];
}
