import { setTimeout as delay } from 'node:timers/promises';
import { counted, formatSeconds } from '../cli/terminal/format.js';
import type { StatusReport } from '../observability/status-page/status-report.js';

const BAR_WIDTH = 24;
/** Intervals between updates on a terminal and elsewhere, milliseconds. */
const TERMINAL_EVERY_MS = 500;
const PLAIN_EVERY_MS = 5_000;

/**
 * Shows one line of progress until the signal aborts.
 * @param report returns the report on the feed; undefined while it is not running
 */
export async function showProgress(report: () => StatusReport | undefined, signal: AbortSignal): Promise<void> {
  const terminal = process.stdout.isTTY === true;
  const describe = createDescription();
  while (!signal.aborted) {
    const current = report();
    const line = current === undefined ? 'starting' : describe(current, Date.now());
    process.stdout.write(terminal ? `\r${line.slice(0, (process.stdout.columns ?? 80) - 1)}\x1b[K` : `${line}\n`);
    await delay(terminal ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS, undefined, { signal }).catch(() => {});
  }
  if (terminal) process.stdout.write('\n');
}

/**
 * Returns a description of the feed's state. The progress is the share of the time from the first known state to now that has been
 * read.
 */
function createDescription(): (report: StatusReport, now: number) => string {
  let begun: { readonly at: number; readonly readTo: number; readonly written: number } | null = null;
  return (report, now) => {
    const { lagSeconds, runsWritten } = report;
    const [error] = report.currentErrors;
    if (error !== undefined) return `${error.message} (${counted(error.failures, 'failure', 'failures')}; retrying)`;
    if (lagSeconds !== null && (report.caughtUp || report.backfillComplete)) return upToDate(report, lagSeconds);
    const deliveredUpTo = report.passes.find(({ pass }) => pass === 'feed')?.deliveredUpTo ?? null;
    if (deliveredUpTo === null) return 'starting';
    const readTo = Date.parse(deliveredUpTo);
    begun ??= { at: now, readTo, written: runsWritten };
    const share = Math.min(1, Math.max(0, (readTo - begun.readTo) / Math.max(1, now - begun.readTo)));
    const rate = ((runsWritten - begun.written) * 1000) / Math.max(1, now - begun.at);
    return `catching up ${bar(share)} ${Math.floor(share * 100)}%  ${runsWritten} runs, ${Math.round(rate)}/s`;
  };
}

function upToDate({ runsWritten, pendingResults, quarantinedEntries, caughtUp }: StatusReport, lag: number): string {
  const state = caughtUp ? 'up to date' : 'following';
  const parts = [`${runsWritten} runs written`, `${formatSeconds(lag)} behind`];
  if (pendingResults) parts.push(`${pendingResults} pending`);
  if (quarantinedEntries) parts.push(`${quarantinedEntries} in quarantine`);
  return `${state}: ${parts.join(', ')}`;
}

function bar(share: number): string {
  const done = Math.round(share * BAR_WIDTH);
  return `[${'#'.repeat(done)}${'-'.repeat(BAR_WIDTH - done)}]`;
}
