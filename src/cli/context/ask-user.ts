import { createInterface, type ReadLineOptions } from 'node:readline/promises';
import { CommandFailure, EXIT } from './exit.js';

/**
 * Asks a question on stderr, because stdout is for results. Returns an empty answer if the input ends.
 * @param terminal streams of the terminal; by default those of the process
 * @throws CommandFailure on Ctrl-C, which is not delivered as a signal during a question
 */
export async function askUser(
  question: string,
  terminal: ReadLineOptions = { input: process.stdin, output: process.stderr },
): Promise<string> {
  const lines = createInterface({ ...terminal, prompt: question });
  let interrupted = false;
  lines.once('SIGINT', () => {
    interrupted = true;
    lines.close();
  });
  lines.prompt();
  const { value: answer } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  // The next message starts on a new line.
  if (answer === undefined) terminal.output?.write('\n');
  if (interrupted) throw new CommandFailure('interrupted; nothing was changed', EXIT.interrupted);
  return answer ?? '';
}
