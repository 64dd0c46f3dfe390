import type { Command } from 'commander';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure } from '../context/exit.js';
import { checkDatabase } from '../doctor/database-checks.js';
import type { CheckOutcome, Finding } from '../doctor/finding.js';
import { checkService } from '../doctor/service-checks.js';
import { checkSettings } from '../doctor/settings-checks.js';
import { counted, printable, wrapIndented } from '../terminal/format.js';

const examples = `
Reads one entry of the feed and the database, and writes nothing. The exit code
is 0 if no check fails (warnings are not failures), otherwise 1.

Examples:
  $ scanfeed doctor
  Failing checks, for a script:
    $ scanfeed doctor --json | jq '.findings[] | select(.outcome == "failing")'`;

/** `scanfeed doctor`: checks the installation. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('doctor')
    .description('Check the settings, the service and the database, and show how to fix problems.')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', examples)
    .action(async ({ json }: { json?: true }) => {
      const findings = await checkInstallation(io);
      const failures = findings.filter(({ outcome }) => outcome === 'failing').length;
      io.write(json ? `${JSON.stringify({ ok: failures === 0, findings })}\n` : describeFindings(findings, io));
      if (failures > 0) throw new CommandFailure(counted(failures, 'check fails', 'checks fail'));
    });
}

async function checkInstallation({ env, clock }: CommandProcess): Promise<readonly Finding[]> {
  const { settings, findings } = checkSettings(env);
  const others = await Promise.all([checkService(settings, clock), checkDatabase(settings, clock)]);
  return [...findings, ...others.flat()];
}

/** Words, so that outcomes are readable without colours. */
const MARKS: Readonly<Record<CheckOutcome, string>> = { ok: 'ok', warning: 'WARN', failing: 'FAIL', skipped: 'skip' };
const COLOURS: Readonly<Record<CheckOutcome, number>> = { ok: 32, warning: 33, failing: 31, skipped: 2 };

/** @param columns width of the terminal; null for one line per finding */
function describeFindings(
  findings: readonly Finding[],
  { columns, colours = false }: Pick<CommandProcess, 'columns' | 'colours'>,
): string {
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
