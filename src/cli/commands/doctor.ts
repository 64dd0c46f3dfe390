import type { Command } from 'commander';
import type { SettingsFor } from '../../settings/settings.js';
import { GROUPS, type Group } from '../../settings/variables.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure } from '../context/exit.js';
import { forChosenFeeds } from '../context/for-each-feed.js';
import { checkDatabase } from '../doctor/database-checks.js';
import { type CheckOutcome, type Finding, ok, warning } from '../doctor/finding.js';
import { checkService } from '../doctor/service-checks.js';
import { counted, printable, wrapIndented } from '../terminal/format.js';

const examples = `
Reads one entry of the feed, reads the database, and writes nothing. The exit
code is 0 if no check fails (warnings are not failures), otherwise 1.

Examples:
  $ scanfeed doctor
  Every feed of the feeds file:
    $ scanfeed doctor --all
  Failing checks, for a script:
    $ scanfeed doctor --json | jq '.findings[] | select(.outcome == "failing")'`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('doctor')
    .description('Check the settings, the service and the database, and show how to fix problems.');
  withOptions(command, 'feed', 'allFeeds')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', examples)
    .action((options: CommonOptions) =>
      forChosenFeeds(io, options, GROUPS, (settings, part) => checkInstallation(settings, options, part)),
    );
}

async function checkInstallation(
  settings: SettingsFor<Group>,
  { json }: CommonOptions,
  io: CommandProcess,
): Promise<void> {
  const ofSettings =
    settings.warnings.length === 0 ? [ok('all valid')] : settings.warnings.map((line) => warning(line));
  const others = await Promise.all([checkService(settings, io.clock), checkDatabase(settings, io.clock)]);
  const findings = [...ofSettings.map((result) => ({ check: 'settings', ...result })), ...others.flat()];
  const failures = findings.filter(({ outcome }) => outcome === 'failing').length;
  if (json) io.write(`${JSON.stringify({ ok: failures === 0, findings })}\n`);
  else io.writeControls(describeFindings(findings, io));
  if (failures > 0) throw new CommandFailure(counted(failures, 'check fails', 'checks fail'));
}

/** Words, so that outcomes are readable without colours. */
const MARKS: Readonly<Record<CheckOutcome, string>> = { ok: 'ok', warning: 'WARN', failing: 'FAIL', skipped: 'skip' };
const COLOURS: Readonly<Record<CheckOutcome, number>> = { ok: 32, warning: 33, failing: 31, skipped: 2 };

function describeFindings(findings: readonly Finding[], { columns, colours = false }: CommandProcess): string {
  const nameWidth = Math.max(...findings.map(({ check }) => check.length)) + 2;
  return findings
    .map(({ check, outcome, message, statements = [] }) => {
      const mark = MARKS[outcome].padEnd(6);
      const shown = colours ? `\x1b[${COLOURS[outcome]}m${mark}\x1b[0m` : mark;
      const text = wrapIndented(printable(message), mark.length + nameWidth, columns);
      // Not indented, so that they can be copied.
      const fixes = statements.map((statement) => `${printable(statement)};\n`).join('');
      return `${shown}${check.padEnd(nameWidth)}${text}\n${fixes}`;
    })
    .join('');
}
