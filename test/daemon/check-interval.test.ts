import { expect, it } from 'vitest';
import { checkInterval } from '../../src/daemon/check-interval.js';

it.each([
  [1, 5_000],
  [100, 5_000],
  [1_000, 50_000],
  [10_000, 60_000],
])('checks each of %i schemas every %i ms', (schemas, ms) => {
  expect(checkInterval(5_000, schemas)).toBe(ms);
});
