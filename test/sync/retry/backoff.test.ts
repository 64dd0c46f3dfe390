import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pendingPause } from '../../../src/sync/results/retry-pending.js';
import { FEED_BACKOFF, pauseAfter } from '../../../src/sync/retry/backoff.js';

const HOUR = 3_600_000;

describe('the pause after failures', () => {
  it('doubles its bound up to a minute', () => {
    const longest = [1, 2, 3, 7, 8, 100].map((failures) => pauseAfter(failures, { action: 'retry' }, 1));
    expect(longest).toEqual([500, 1000, 2000, 32_000, 60_000, 60_000]);
  });

  it('is never shorter than Retry-After, up to an hour', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.nat(),
        (n, random, after) => {
          const pause = pauseAfter(n, { action: 'retry', retryAfterMs: after }, random);
          expect(pause).toBeGreaterThanOrEqual(Math.min(after, HOUR));
          expect(pause).toBeLessThanOrEqual(Math.max(Math.min(after, HOUR) + 1000, FEED_BACKOFF.maxMs));
        },
      ),
    );
  });

  it.each([
    ['longest', 1, [2000, 4000, 8000, 16_000, 30_000, 30_000]],
    ['shortest', 0, [1000, 2000, 4000, 8000, 15_000, 15_000]],
  ])('grows up to half a minute when an operator is needed (%s)', (_, random, pauses) => {
    expect([1, 2, 3, 4, 5, 50].map((failures) => pauseAfter(failures, { action: 'hold' }, random))).toEqual(pauses);
  });

  it('ignores Retry-After when an operator is needed, since the service does not know when that is', () => {
    expect(pauseAfter(50, { action: 'hold', retryAfterMs: HOUR }, 1)).toBe(30_000);
  });
});

describe('the pause before a pending result is retried', () => {
  it('doubles from the first pause up to an hour', () => {
    expect([0, 1, 2, 7, 40].map((attempts) => pendingPause(attempts, 0, 30_000))).toEqual([
      30_000,
      60_000,
      120_000,
      HOUR,
      HOUR,
    ]);
  });

  it('is always a day after seven days', () => {
    expect(pendingPause(200, 7 * 24 * HOUR + 1, 30_000)).toBe(24 * HOUR);
  });
});
