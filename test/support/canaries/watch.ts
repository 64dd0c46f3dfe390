import { afterAll, afterEach } from 'vitest';
import { takeLeaks } from './capture-leaks.js';

/** For every test file. Hooks of the setup file run after those of the test file, so programs that it stops have ended. */
afterEach(expectNoLeaks);
afterAll(expectNoLeaks);

function expectNoLeaks(): void {
  const leaks = takeLeaks();
  if (leaks.length === 0) return;
  throw new Error(`the program leaked secrets or document content:\n  ${leaks.slice(0, 10).join('\n  ')}`);
}
