import { describe, expect, test } from 'vitest';
import { lagChart, runsChart } from '../../src/observability/status-page/charts.js';
import { describeSeconds } from '../../src/observability/status-page/html.js';
import type { RecentMinute } from '../../src/observability/status-page/recent-history.js';
import { COUNT_STEPS, LAG_STEPS, logScale } from '../../src/observability/status-page/scales.js';
import { windowOf } from '../../src/observability/status-page/window.js';

const MINUTE = 60_000;
/** One minute before a multiple of an hour, so that windows of all lengths end directly after it. */
const PRESENT = 24_000_059;
const NOW = PRESENT * MINUTE + 20_000;

/** Returns the minute this many minutes ago. */
const ago = (minutes: number, figures: Partial<RecentMinute> = {}): RecentMinute => ({
  minute: PRESENT - minutes,
  lagSeconds: 5,
  runs: 0,
  failures: 0,
  ...figures,
});

describe('the window of the charts', () => {
  test.each([
    [0, 1, 1],
    [2, 3, 3],
    [19, 20, 20],
    [20, 21, 21],
    [59, 60, 60],
    [60, 62, 31],
    [179, 180, 60],
    [180, 184, 46],
    [359, 360, 60],
    [10_000, 360, 60],
  ])(
    'begins at the first known minute, up to six hours ago: of %i minutes the window is %i long',
    (minutes, length, cells) => {
      const window = windowOf([ago(minutes), ago(0)], NOW);
      expect([window.length, window.cells.length]).toEqual([length, cells]);
      expect(window.cells.at(-1)).toMatchObject({ lagSeconds: 5, runs: 0 });
    },
  );

  test('adds up runs and failures, takes the highest lag, and leaves unknown minutes blank', () => {
    const known = [
      ago(200),
      ago(3, { lagSeconds: 9, runs: 3, failures: 1 }),
      ago(2, { runs: null }),
      ago(0, { runs: 4 }),
    ];
    const { cells, minutesWithoutLag, minutesWithoutLead } = windowOf(known, NOW);
    expect(cells.at(-1)).toMatchObject({ lagSeconds: 9, runs: 7, failures: 1 });
    expect(cells.at(-2)).toMatchObject({ lagSeconds: null, runs: null, failures: 0 });
    expect([minutesWithoutLag, minutesWithoutLead]).toEqual([197, 198]);
  });

  test('keeps the bars aligned when time passes', () => {
    const known = Array.from({ length: 300 }, (_, minutes) => ago(299 - minutes, { runs: minutes }));
    const [one, next] = [0, 1].map((later) => windowOf(known, NOW - 5 * MINUTE + later * 5 * MINUTE).cells);
    expect(next?.slice(0, -1)).toEqual(one);
  });

  test('does not count future minutes as unknown', () => {
    const window = windowOf([ago(4), ago(200)], NOW - 4 * MINUTE);
    expect(window).toMatchObject({ length: 200, minutes: 197, minutesWithoutLag: 195 });
  });

  test('is empty when nothing is known', () => {
    expect(windowOf([], NOW)).toMatchObject({ length: 1, minutesWithoutLag: 1, minutesWithoutLead: 1 });
  });
});

test.each([
  [1, ['0 +0', '100% +1']],
  [2, ['0 +0', '50% +1', '100% +2']],
  [3, ['0 +0', '33.333% +1', '100% +3']],
  [360, ['0 +0', '50% +180', '100% +360']],
])('the axis of %i minutes spans just them, with labels at whole minutes', (minutes, labels) => {
  const window = windowOf([ago(minutes - 1), ago(0)], NOW);
  const found = lagChart(window).matchAll(/<text x="([^"]+)" y="152" [^>]*>(\d\d):(\d\d)/g);
  const after = (hour: string, minute: string) =>
    (Number(hour) * 60 + Number(minute) - window.first + 1e9 * 1440) % 1440;
  expect([...found].map(([, x, hour = '', minute = '']) => `${x} +${after(hour, minute)}`)).toEqual(labels);
});

describe('the scale of the lag', () => {
  const labels = (...lags: number[]) => logScale(lags, LAG_STEPS).lines.map(({ label }) => label);

  test('spans the values with familiar steps', () => {
    expect(labels()).toEqual(['1 s', '10 s', '1 min']);
    expect(labels(0, 0.2)).toEqual(['1 s', '10 s', '1 min']);
    expect(labels(5, 700)).toEqual(['1 s', '10 s', '1 min', '10 min', '1 h']);
    expect(labels(2_000_000, 2_300_000)).toEqual(['7 d', '30 d']);
    expect(labels(1, 86_401)).toEqual(['1 s', '1 min', '1 h', '1 d']);
    expect(labels(1e12)).toEqual(['1 y', '10 y']);
  });

  test('keeps the lowest value off the bottom when it is a second or more', () => {
    for (const least of [2, 11, 61, 90_000])
      expect(logScale([least, 100_000], LAG_STEPS).at(least)).toBeGreaterThan(0.04);
  });

  test.each([0, 0.001, 1, 59, 3_600, 1e12])('places %f s between 0 and 1', (seconds) => {
    const at = logScale([seconds], LAG_STEPS).at(seconds);
    expect(at).toBeGreaterThanOrEqual(0);
    expect(at).toBeLessThanOrEqual(1);
  });
});

test.each([
  [[], ['0', '1', '10']],
  [[0], ['0', '1', '10']],
  [[7], ['1', '10']],
  [[0, 1_300], ['0', '1', '10', '100', '1,000', '10,000'].filter((_, at) => at % 2 === 0)],
  [
    [8_500, 10_400],
    ['1,000', '10,000', '100,000'],
  ],
])('the scale of %j runs has powers of ten, from zero if a count is low', (counts, labels) => {
  expect(logScale(counts, COUNT_STEPS).lines.map(({ label }) => label)).toEqual(labels);
});

test('one high bar does not flatten the others', () => {
  const counts = [60_001, 9, 0, 7, 8, 9, 6, 8, 7, 8, 9, 8];
  const scale = logScale(counts, COUNT_STEPS);
  expect(scale.at(8)).toBeGreaterThan(0.25);
  expect(scale.at(60_001)).toBeLessThan(1);
  const known = counts.map((runs, at) => ago(counts.length - 1 - at, { runs }));
  expect(runsChart(windowOf(known, NOW))).toContain('60,080 runs in the last 12 min.');
});

test.each([
  [0, '0.0 s'],
  [9.94, '9.9 s'],
  [9.96, '10 s'],
  [59.6, '1 min'],
  [125, '2 min 5 s'],
  [3_599.7, '1 h'],
  [7_260, '2 h 1 min'],
  [48 * 3_600, '2 d'],
  [2_246_400 + 3_600, '26 d 1 h'],
])('describeSeconds formats %f s as %s', (seconds, words) => {
  expect(describeSeconds(seconds)).toBe(words);
});

describe('the caption of a chart', () => {
  const captionOf = (chart: string) => /<figcaption[^>]*>([^<]*)</.exec(chart)?.[1];

  test('names the highest lag with its time, failed attempts, and unknown minutes', () => {
    const window = windowOf([ago(30), ago(20, { lagSeconds: 754, failures: 2 }), ago(0, { runs: 1 })], NOW);
    const at = new Date((PRESENT - 20) * MINUTE).toISOString().slice(11, 16);
    expect(captionOf(lagChart(window))).toBe(
      `Highest: 12 min 34 s, about ${at} UTC. 2 attempts failed. Unknown for 28 min.`,
    );
    expect(captionOf(runsChart(window))).toBe(
      '1 run in the last 31 min. This process did not lead, or did not run, for 28 min.',
    );
  });

  test('says that there is no data when nothing is known', () => {
    const window = windowOf([ago(0, { lagSeconds: null, runs: null })], NOW);
    expect(captionOf(lagChart(window))).toBe('No data yet for the last 1 min.');
    expect(captionOf(runsChart(window))).toBe('This process did not lead the feed in the last 1 min.');
    expect(lagChart(window)).not.toContain('class="bar"');
  });
});
