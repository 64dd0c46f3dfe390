import { expect, test } from 'vitest';
import { createLiveness, type Liveness, livenessOf } from '../../src/observability/admin/liveness.js';
import { handClock } from '../support/observed.js';

test('a process is alive only while all its loops are, and names the feed of the longest silence among the hung ones', () => {
  const clock = handClock();
  const [busy, hung, pausing] = [0, 0, 0].map(() => createLiveness(clock.monotonic)) as [Liveness, Liveness, Liveness];
  const feeds = [
    { name: 'busy', liveness: busy },
    { name: 'pausing', liveness: pausing },
    { name: 'hung', liveness: hung },
  ];
  const { check } = livenessOf(() => feeds);
  clock.advance(10_000);
  pausing.ticked(3_600_000);
  clock.advance(49_999);
  busy.ticked(0);
  expect(check()).toMatchObject({ alive: true, silentMs: 59_999 });
  clock.advance(1);
  expect(check()).toMatchObject({ alive: false, silentMs: 60_000 });
  hung.ticked(0);
  expect(check()).toMatchObject({ alive: true, silentMs: 50_000 });
  clock.advance(59_999);
  busy.ticked(0);
  clock.advance(1);
  // The pausing loop has been silent for longer, as it announced.
  expect(check()).toEqual({ feed: 'hung', alive: false, silentMs: 60_000 });
  feeds.pop();
  expect(check()).toEqual({ feed: 'pausing', alive: true, silentMs: 110_000 });
});

test('a process without feeds is alive', () => {
  expect(livenessOf(() => []).check()).toEqual({ feed: null, alive: true, silentMs: 0 });
});
