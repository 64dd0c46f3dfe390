import type { CommandProcess } from '../context/command-process.js';
import { CommandFailure, EXIT } from '../context/exit.js';

/**
 * Says what is about to happen and asks whether it shall. Returns when the answer is yes, or was given beforehand.
 * @throws CommandFailure when it is anything else, or nobody can be asked
 */
export async function confirm(
  { note, ask }: CommandProcess,
  { plan, question, yes }: { readonly plan: string; readonly question: string; readonly yes: boolean },
): Promise<void> {
  if (yes) return;
  note(plan);
  if (ask === null) throw new CommandFailure('nobody can be asked here: add --yes to go ahead', EXIT.usage);
  const answer = (await ask(`${question} [y/N] `)).trim().toLowerCase();
  if (answer !== 'y' && answer !== 'yes') throw new CommandFailure('nothing was changed');
}
