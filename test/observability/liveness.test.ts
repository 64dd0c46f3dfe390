import { expect, test } from 'vitest';
import { createLiveness, livenessOf } from '../../src/observability/admin/liveness.js';
import { handClock } from '../support/observed.js';

test('a process is alive only while all its loops are, and reports the longest silence of the hung ones', () => {
  const clock = handClock();
  const [busy, hung, pausing] = [0, 0, 0].map(() => createLiveness(clock.monotonic));
  const loops = new Set([busy, hung, pausing].flatMap((loop) => loop ?? []));
  const { check } = livenessOf(() => loops);
  clock.advance(10_000);
  pausing?.ticked(3_600_000);
  clock.advance(49_999);
  busy?.ticked(0);
  expect(check()).toEqual({ alive: true, silentMs: 59_999 });
  clock.advance(1);
  expect(check()).toEqual({ alive: false, silentMs: 60_000 });
  hung?.ticked(0);
  expect(check()).toEqual({ alive: true, silentMs: 50_000 });
  clock.advance(59_999);
  busy?.ticked(0);
  clock.advance(1);
  // The pausing loop has been silent for longer, as it announced.
  expect(check()).toEqual({ alive: false, silentMs: 60_000 });
  if (hung) loops.delete(hung);
  expect(check()).toEqual({ alive: true, silentMs: 110_000 });
});

test('a process without loops is alive', () => {
  expect(livenessOf(() => []).check()).toEqual({ alive: true, silentMs: 0 });
});
