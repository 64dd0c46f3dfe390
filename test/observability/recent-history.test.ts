import { describe, expect, test } from 'vitest';
import { createFeedState } from '../../src/observability/feed-state.js';
import type { RecentMinute } from '../../src/observability/status-page/recent-history.js';
import { createRecentHistory, HISTORY_MINUTES } from '../../src/observability/status-page/recent-history.js';
import { handClock } from '../support/observed.js';

const MINUTE = 60_000;

function setUp() {
  const clock = handClock();
  const state = createFeedState({ monotonic: clock.monotonic, pollIntervalMs: 5_000, requestTimeoutMs: 30_000 });
  const history = createRecentHistory(clock, state);
  const first = Math.floor(clock.now() / MINUTE);
  /** Reports this lag. */
  const knows = (lagMs: number | null, readAt = clock.monotonic()) => {
    history.awake();
    state.setFreshness({ readAt, lagMs, dataCompleteAsOf: lagMs === null ? null : new Date(0) });
    history.awake();
  };
  const pass = (ms: number, each: () => void, every = 10_000) => {
    for (let passed = 0; passed < ms; passed += every) {
      clock.advance(every);
      each();
    }
  };
  /** The recorded minutes, numbered from the first. */
  const recorded = () =>
    history.minutes().map(({ minute, ...figures }) => [minute - first, figures] as const satisfies [number, object]);
  return { clock, state, history, knows, pass, recorded };
}

const figures = (lagSeconds: number | null, runs: number | null, failures = 0): Omit<RecentMinute, 'minute'> => ({
  lagSeconds,
  runs,
  failures,
});

describe('the recent history', () => {
  test('keeps the highest lag of each minute and adds up runs and failures', () => {
    const { state, history, knows, clock, recorded } = setUp();
    state.setLeader(() => 1_000_000);
    knows(500);
    history.wrote(3);
    clock.advance(4_000);
    knows(0);
    history.wrote(2);
    history.failed();
    history.failed();
    clock.advance(MINUTE - 4_000);
    knows(0);
    expect(recorded()).toEqual([
      [0, figures(4.5, 5, 2)],
      [1, figures(56, 0)],
    ]);
  });

  test('lets the lag grow when no new state arrives', () => {
    const { history, knows, pass, recorded } = setUp();
    knows(0);
    pass(2 * MINUTE, () => history.failed(), 20_000);
    expect(recorded()).toEqual([
      [0, figures(40, null, 2)],
      [1, figures(100, null, 3)],
      [2, figures(120, null, 1)],
    ]);
  });

  test('has no lag before the first state, or when the state has none', () => {
    const { history, knows, clock, recorded } = setUp();
    history.awake();
    clock.advance(MINUTE);
    knows(null);
    expect(recorded()).toEqual([
      [0, figures(null, null)],
      [1, figures(null, null)],
    ]);
  });

  test('ignores a state that was read earlier than the known one', () => {
    const { knows, clock, recorded } = setUp();
    clock.advance(2_000);
    knows(0, 2_000);
    knows(9_000, 1_000);
    expect(recorded()).toEqual([[0, figures(0, null)]]);
  });

  test('has null instead of 0 runs when another process led', () => {
    const { state, knows, pass, recorded } = setUp();
    pass(MINUTE, () => knows(1_000));
    state.setLeader(() => 90_000);
    pass(2 * MINUTE, () => knows(1_000));
    expect(recorded().map(([minute, { runs }]) => [minute, runs])).toEqual([
      [0, null],
      [1, 0],
      [2, null],
      [3, null],
    ]);
  });

  test('fills a wait of two minutes with the lag at the end of each', () => {
    const { state, knows, clock, recorded } = setUp();
    state.setLeader(() => 1_000_000);
    clock.advance(30_000);
    knows(0);
    clock.advance(3 * MINUTE - 15_000);
    knows(0);
    expect(recorded()).toEqual([
      [0, figures(0, 0)],
      [1, figures(90, 0)],
      [2, figures(150, 0)],
      [3, figures(165, 0)],
    ]);
  });

  test('leaves a longer gap blank and discards the lag known before it', () => {
    const { history, knows, clock, recorded } = setUp();
    knows(0);
    clock.advance(4 * MINUTE);
    history.awake();
    expect(recorded()).toEqual([
      [0, figures(0, null)],
      [4, figures(null, null)],
    ]);
    knows(2_000);
    expect(recorded()[1]).toEqual([4, figures(2, null)]);
  });

  test('deletes minutes that are older than six hours', () => {
    const { knows, pass, recorded } = setUp();
    pass(8 * 60 * MINUTE, () => knows(0), MINUTE);
    expect(recorded()).toHaveLength(HISTORY_MINUTES);
    expect(recorded()[0]?.[0]).toBe(8 * 60 - HISTORY_MINUTES + 1);
    expect(recorded().at(-1)?.[0]).toBe(8 * 60);
  });

  test('stays sorted and bounded when the clock of the machine is set back and forth', () => {
    const { clock, state } = setUp();
    let offset = 0;
    const history = createRecentHistory({ ...clock, now: () => clock.now() + offset }, state);
    for (let minute = 0; minute < 2 * HISTORY_MINUTES; minute++) {
      clock.advance(MINUTE);
      offset = (minute % 7) * 45 * MINUTE;
      history.awake();
      const known = history.minutes().map((each) => each.minute);
      const now = Math.floor((clock.now() + offset) / MINUTE);
      expect(known).toEqual([...known].sort((one, other) => one - other));
      expect(known.at(-1)).toBe(now);
      expect(known[0]).toBeGreaterThan(now - HISTORY_MINUTES);
    }
  });
});
