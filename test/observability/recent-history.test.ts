import { describe, expect, test } from 'vitest';
import {
  createRecentHistory,
  REMEMBERED_MINUTES,
  type RecentMinute,
} from '../../src/observability/status-page/recent-history.js';
import { handClock } from '../support/observed.js';

const MINUTE = 60_000;

function remembered() {
  const clock = handClock();
  const history = createRecentHistory(clock);
  const first = Math.floor(clock.now() / MINUTE);
  /** The feed was complete so long ago. */
  const knows = (lagMs: number | null) =>
    history.knows({ readAt: clock.monotonic(), lagMs, dataCompleteAsOf: lagMs === null ? null : new Date(0) });
  const pass = (ms: number, each: () => void, every = 10_000) => {
    for (let passed = 0; passed < ms; passed += every) {
      clock.advance(every);
      each();
    }
  };
  /** By minutes since the first. */
  const told = () =>
    history.minutes().map(({ minute, ...figures }) => [minute - first, figures] as const satisfies [number, object]);
  return { clock, history, knows, pass, told };
}

const figures = (lagSeconds: number | null, runs: number | null, failures = 0): Omit<RecentMinute, 'minute'> => ({
  lagSeconds,
  runs,
  failures,
});

describe('the recent history', () => {
  test('keeps the worst lag of a minute, which is right before news comes, and adds up runs and failures', () => {
    const { history, knows, clock, told } = remembered();
    history.leading(1_000_000);
    knows(500);
    history.wrote(3);
    clock.advance(4_000);
    knows(0);
    history.wrote(2);
    history.failed();
    history.failed();
    clock.advance(MINUTE - 4_000);
    knows(0);
    expect(told()).toEqual([
      [0, figures(4.5, 5, 2)],
      [1, figures(56, 0)],
    ]);
  });

  test('lets the lag grow while no news comes', () => {
    const { history, knows, pass, told } = remembered();
    knows(0);
    pass(2 * MINUTE, () => history.failed(), 20_000);
    expect(told()).toEqual([
      [0, figures(40, null, 2)],
      [1, figures(100, null, 3)],
      [2, figures(120, null, 1)],
    ]);
  });

  test('knows no lag before it is told one, and none where there is none', () => {
    const { history, knows, clock, told } = remembered();
    history.awake();
    clock.advance(MINUTE);
    knows(null);
    expect(told()).toEqual([
      [0, figures(null, null)],
      [1, figures(null, null)],
    ]);
  });

  test('does not take what an older look saw for news', () => {
    const { history, clock, told } = remembered();
    clock.advance(2_000);
    history.knows({ readAt: 2_000, lagMs: 0, dataCompleteAsOf: new Date(0) });
    history.knows({ readAt: 1_000, lagMs: 9_000, dataCompleteAsOf: new Date(0) });
    expect(told()).toEqual([[0, figures(0, null)]]);
  });

  test('has no runs, not even none, of a time in which another process led', () => {
    const { history, knows, pass, told } = remembered();
    pass(MINUTE, () => knows(1_000));
    history.leading(90_000);
    pass(2 * MINUTE, () => knows(1_000));
    expect(told().map(([minute, { runs }]) => [minute, runs])).toEqual([
      [0, null],
      [1, 0],
      [2, null],
      [3, null],
    ]);
  });

  test('bridges a wait of two minutes with the lag at the end of each', () => {
    const { history, knows, clock, told } = remembered();
    history.leading(1_000_000);
    clock.advance(30_000);
    knows(0);
    clock.advance(3 * MINUTE - 15_000);
    knows(0);
    expect(told()).toEqual([
      [0, figures(0, 0)],
      [1, figures(90, 0)],
      [2, figures(150, 0)],
      [3, figures(165, 0)],
    ]);
  });

  test('leaves a longer silence blank, and does not believe afterwards what it knew before', () => {
    const { history, knows, clock, told } = remembered();
    knows(0);
    clock.advance(4 * MINUTE);
    history.awake();
    expect(told()).toEqual([
      [0, figures(0, null)],
      [4, figures(null, null)],
    ]);
    knows(2_000);
    expect(told()[1]).toEqual([4, figures(2, null)]);
  });

  test('forgets what is older than six hours', () => {
    const { knows, pass, told } = remembered();
    pass(8 * 60 * MINUTE, () => knows(0), MINUTE);
    expect(told()).toHaveLength(REMEMBERED_MINUTES);
    expect(told()[0]?.[0]).toBe(8 * 60 - REMEMBERED_MINUTES + 1);
    expect(told().at(-1)?.[0]).toBe(8 * 60);
  });

  test('keeps in order, and within bounds, when the clock of the machine is set back and forth', () => {
    const clock = handClock();
    let offset = 0;
    const history = createRecentHistory({ monotonic: clock.monotonic, now: () => clock.now() + offset });
    for (let minute = 0; minute < 2 * REMEMBERED_MINUTES; minute++) {
      clock.advance(MINUTE);
      offset = (minute % 7) * 45 * MINUTE;
      history.knows({ readAt: clock.monotonic(), lagMs: 0, dataCompleteAsOf: new Date(0) });
      const known = history.minutes().map((each) => each.minute);
      const now = Math.floor((clock.now() + offset) / MINUTE);
      expect(known).toEqual([...known].sort((one, other) => one - other));
      expect(known.at(-1)).toBe(now);
      expect(known[0]).toBeGreaterThan(now - REMEMBERED_MINUTES);
    }
  });
});
