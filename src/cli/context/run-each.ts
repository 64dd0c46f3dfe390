import { explain } from './exit.js';

/**
 * Runs the work for one item after another. A failure does not stop the others.
 * @param onFailed called with the message of each failure
 * @returns the exit codes of the failures
 */
export async function runEach<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  onFailed: (item: T, message: string) => void,
): Promise<readonly number[]> {
  const codes: number[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      const { message, exitCode } = explain(error);
      onFailed(item, message ?? '');
      codes.push(exitCode);
    }
  }
  return codes;
}
