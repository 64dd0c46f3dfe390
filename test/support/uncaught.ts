import { afterAll, beforeAll } from 'vitest';

/** Errors that nobody caught while the file's tests ran. They end a process that is not a test. */
export function watchUncaught(): readonly unknown[] {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  beforeAll(() => void process.on('uncaughtExceptionMonitor', note));
  afterAll(() => void process.off('uncaughtExceptionMonitor', note));
  return uncaught;
}
