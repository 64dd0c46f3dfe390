import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { postponed } from '../../../src/sync/results/retry-pending.js';
import { pauseAfter } from '../../../src/sync/retry/backoff.js';

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
          expect(pause).toBeLessThanOrEqual(Math.max(Math.min(after, HOUR) + 1000, 60_000));
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
  const RUN = { scanId: 'scan-1', revision: 1, status: 'completed', reason: 'not_loaded' } as const;
  /** @param attempts the failed ones before this one */
  const pause = (attempts: number, pendingForMs: number) =>
    postponed({ ...RUN, attempts, pendingForMs }, 'not_loaded', 30_000).nextTryInMs;

  it('doubles with each attempt up to an hour', () => {
    expect([0, 1, 6, 40].map((attempts) => pause(attempts, 0))).toEqual([60_000, 120_000, HOUR, HOUR]);
  });

  it('is always a day after seven days', () => {
    expect(pause(200, 7 * 24 * HOUR + 1)).toBe(24 * HOUR);
  });
});
