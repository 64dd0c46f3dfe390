import type { Command } from 'commander';
import { type CommandProcess, thisProcess } from './command-process.js';
import { examineDatabase } from './doctor/examine-database.js';
import { examineService } from './doctor/examine-service.js';
import type { Finding } from './doctor/finding.js';
import { judgeDatabase } from './doctor/judge-database.js';
import { judgeService } from './doctor/judge-service.js';
import { judgeSettings, readGroups } from './doctor/settings-checks.js';
import { showFindings } from './doctor/show-findings.js';
import { CommandFailure } from './exit.js';
import { counted } from './human.js';

const examples = `
Nothing is written anywhere: the feed is read for one entry, and the database is
only looked at. Ends with 0 where all is well, warnings included, and with 1
where a check fails.

Examples:
  $ scanfeed doctor
  What fails, for a script:
    $ scanfeed doctor --json | jq '.findings[] | select(.outcome == "failing")'`;

/** `scanfeed doctor`: is everything as it must be, and if not, what mends it? */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('doctor')
    .description('Check the settings, the service and the database, and say how to mend what is wrong.')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', examples)
    .action(async ({ json }: { json?: true }) => {
      const findings = await examine(io);
      const failures = findings.filter(({ outcome }) => outcome === 'failing').length;
      io.write(
        json
          ? `${JSON.stringify({ ok: failures === 0, findings })}\n`
          : showFindings(findings, { columns: io.columns, colours: io.colours ?? false }),
      );
      if (failures > 0) throw new CommandFailure(`${counted(failures, 'check fails', 'checks fail')}`);
    });
}

async function examine({ env, clock }: CommandProcess): Promise<readonly Finding[]> {
  const given = readGroups(env);
  const { service, feed, database } = given;
  const [serviceExam, databaseExam] = await Promise.all([
    service === null || feed === null ? null : examineService(service, feed, clock),
    database === null ? null : examineDatabase(database, feed, clock),
  ]);
  return [...judgeSettings(given), ...judgeService(serviceExam, clock.now()), ...judgeDatabase(databaseExam, service)];
}
