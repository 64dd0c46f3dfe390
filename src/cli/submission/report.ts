import { CommandFailure, EXIT } from '../exit.js';
import { counted } from '../human.js';
import { printable } from '../table.js';
import type { SubmittedFile } from './submission.js';

/** One file's line, once it was submitted or not; none for those that the command did not come to. */
export function describeSubmitted(submitted: SubmittedFile): string {
  if (submitted.outcome === 'not_sent') return '';
  return `${printable(submitted.file)}: ${outcomeOf(submitted)}\n`;
}

function outcomeOf({ outcome, scanId, status, problem }: SubmittedFile): string {
  const id = printable(scanId ?? '');
  if (outcome === 'submitted') return `submitted as ${id}`;
  if (outcome === 'failed') return `not submitted: ${printable(problem?.message ?? '')}`;
  if (outcome === 'interrupted') return 'was on its way: perhaps submitted, perhaps not';
  const again = status === 'failed' ? '; --new submits it again' : '';
  return `submitted before as ${id}: ${status}${again}`;
}

/** One file's line, once its run is over. */
export function describeEnded({ file, scanId, status, failureReason, error, problem }: SubmittedFile): string {
  const why = failureReason === null ? '' : ` (${printable(failureReason)})`;
  const said = error === null ? '' : `; the service says: "${printable(error)}"`;
  const now = problem === null ? `${status}${why}${said}` : `not known: ${printable(problem.message)}`;
  return `${printable(file)}: ${printable(scanId ?? '')}: ${now}\n`;
}

/** All counts in one line. */
export function summary(files: readonly SubmittedFile[], waited: boolean): string {
  const count = (fits: (file: SubmittedFile) => boolean) => files.filter(fits).length;
  const parts: readonly (readonly [number, string])[] = [
    [count(({ outcome }) => outcome === 'submitted'), 'submitted'],
    [count(({ outcome }) => outcome === 'repeated'), 'submitted before'],
    [count(({ outcome }) => outcome === 'failed'), 'not submitted'],
    [count(({ outcome }) => outcome === 'interrupted'), 'on their way when interrupted'],
    [count(({ outcome }) => outcome === 'not_sent'), 'not sent'],
    [waited ? count(({ status }) => status === 'completed') : 0, 'completed'],
    [count(({ status }) => status === 'failed'), 'failed'],
    [waited ? count(({ status }) => status === 'processing') : 0, 'still processing'],
  ];
  const said = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return `${counted(files.length, 'file', 'files')}: ${said.join(', ')}`;
}

/** What the command ends with; null: all went well. */
export function failureOf(files: readonly SubmittedFile[], interrupted: boolean): CommandFailure | null {
  const repeat = 'the same command again submits what is left, and nothing twice';
  const unsent = files.some(({ outcome }) => ['failed', 'interrupted', 'not_sent'].includes(outcome));
  if (interrupted) {
    return new CommandFailure(unsent ? `interrupted; ${repeat}` : 'interrupted; all was submitted', EXIT.interrupted);
  }
  const lasting = files.filter(({ problem, status }) => status === 'failed' || problem?.passing === false).length;
  const passing = files.filter(({ problem }) => problem?.passing === true).length;
  if (lasting + passing === 0) return null;
  const said = `${lasting + passing} of ${counted(files.length, 'file', 'files')} without a result`;
  return lasting > 0 ? new CommandFailure(said) : new CommandFailure(`${said}; ${repeat}`, EXIT.tryAgain);
}
