import { afterAll, afterEach } from 'vitest';
import { takeExposures } from './overhear.js';

/** For every file of tests. The hooks of the setup come after those of the file, so that what those stop has ended. */
afterEach(expectNothingExposed);
afterAll(expectNothingExposed);

function expectNothingExposed(): void {
  const exposures = takeExposures();
  if (exposures.length === 0) return;
  throw new Error(`the program showed what it must not show:\n  ${exposures.slice(0, 10).join('\n  ')}`);
}
