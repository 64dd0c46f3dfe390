import { thisProcess } from '../cli/context/command-process.js';
import { counted, formatSeconds } from '../cli/terminal/format.js';
import { type Figures, withProgress } from '../cli/terminal/progress.js';
import { nextAttempt } from '../cli/terminal/show-status.js';
import { systemClock } from '../core/clock.js';
import type { CurrentError } from '../core/errors.js';
import type { StatusReport } from '../observability/status-page/status-report.js';

/** Interval between looks at the state, milliseconds. */
const CHECK_MS = 500;

/**
 * Shows one line of progress until the signal aborts.
 * @param report returns the report on the feed; undefined while it is not running
 */
export async function showProgress(report: () => StatusReport | undefined, signal: AbortSignal): Promise<void> {
  const { columns: noteColumns, writeControls: note } = thisProcess;
  let said: string | undefined;
  const describe = createDescription();
  await withProgress({ note, noteColumns, clock: systemClock }, {}, 'starting', async (progress) => {
    while (!signal.aborted) {
      const current = report();
      const error = current === undefined ? undefined : firstError(current);
      // A line of the terminal is too short for an error with its remedy.
      const reason = error && `${error.message} (${error.kind}, runbook ${error.runbook})`;
      if (reason !== undefined && reason !== said) progress.say(reason);
      said = reason;
      progress.show(current === undefined ? 'starting' : describe(current, Date.now()));
      await systemClock.sleep(CHECK_MS, signal);
    }
  });
}

/** Returns a description of the feed's state. While it catches up, that is how much of the time up to now has been read. */
function createDescription(): (report: StatusReport, now: number) => string | Figures {
  let from: Date | null = null;
  return (report, now) => {
    const { lagSeconds, runsWritten } = report;
    const error = firstError(report);
    if (error !== undefined) return failing(error, now);
    if (lagSeconds !== null && (report.caughtUp || report.initialSyncComplete)) return upToDate(report, lagSeconds);
    const deliveredUpTo = report.passes.find(({ pass }) => pass === 'feed')?.deliveredUpTo ?? null;
    if (deliveredUpTo === null) return 'starting';
    const upTo = new Date(deliveredUpTo);
    from ??= upTo;
    return { done: runsWritten, what: 'runs written, catching up', delivered: { from, upTo, until: new Date(now) } };
  };
}

/** Returns the error that requires action, or else the first one. */
function firstError({ currentErrors }: StatusReport): CurrentError | undefined {
  return currentErrors.find(({ held }) => held) ?? currentErrors[0];
}

function failing({ held, since, failures, nextTryAt, kind }: CurrentError, now: number): string {
  const headline = held ? 'action required' : 'failing';
  const times = `for ${formatSeconds((now - Date.parse(since)) / 1_000)}, ${counted(failures, 'failure', 'failures')}`;
  return `${headline}, ${nextAttempt(nextTryAt, now)} (${kind}, ${times})`;
}

function upToDate({ runsWritten, pendingResults, quarantinedEntries, caughtUp }: StatusReport, lag: number): string {
  const state = caughtUp ? 'up to date' : 'following';
  const parts = [`${runsWritten} runs written`, `${formatSeconds(lag)} behind`];
  if (pendingResults) parts.push(`${pendingResults} pending`);
  if (quarantinedEntries) parts.push(`${quarantinedEntries} in quarantine`);
  return `${state}: ${parts.join(', ')}`;
}
