import { grouped } from './html.js';

/** The vertical scale of a chart. */
export interface Scale {
  /** Horizontal grid lines. */
  readonly lines: readonly { readonly value: number; readonly label: string }[];
  /** Returns the height of a value, from 0 (bottom) to 1 (top). */
  at(value: number): number;
  /** Bars of higher values are cut off. */
  readonly top: number;
}

/** Counts above this multiple of the 90th percentile are cut off, so that one high bar does not flatten the others. */
const OUTLIER = 5;

const LAGS: readonly (readonly [seconds: number, label: string])[] = [
  [1, '1 s'],
  [10, '10 s'],
  [60, '1 min'],
  [600, '10 min'],
  [3_600, '1 h'],
  [21_600, '6 h'],
  [86_400, '1 d'],
  [604_800, '7 d'],
  [2_592_000, '30 d'],
  [31_536_000, '1 y'],
  [315_360_000, '10 y'],
];
/** Maximum number of grid lines. */
const MAX_LINES = 5;

/** Returns a logarithmic scale, so that one chart shows seconds in normal operation and days after an outage. */
export function lagScale(lags: readonly number[]): Scale {
  const least = lags.length === 0 ? 0 : Math.min(...lags);
  // Starts well below the lowest value, so that it does not look like zero.
  const from = Math.max(
    0,
    LAGS.slice(0, -1).findLastIndex(([seconds]) => seconds <= least / 2),
  );
  const most = Math.max(60, ...lags);
  const beyond = LAGS.findIndex(([seconds], index) => seconds >= most && index > from);
  const steps = LAGS.slice(from, beyond === -1 ? undefined : beyond + 1);
  const [foot = 1] = steps[0] ?? [];
  const [top = 60] = steps.at(-1) ?? [];
  const stride = Math.ceil(steps.length / MAX_LINES);
  const lines = steps.filter((_, index) => index % stride === 0);
  return {
    top: Number.POSITIVE_INFINITY,
    lines: lines.map(([value, label]) => ({ value, label })),
    at: (value) => clamped(Math.log(Math.max(value, foot) / foot) / Math.log(top / foot)),
  };
}

/** Returns a linear scale from 0 to a round number. */
export function countScale(counts: readonly number[]): Scale {
  const sorted = counts.filter((count) => count > 0).sort((one, other) => one - other);
  const [highest = 0, usual = 0] = [sorted.at(-1), sorted[Math.floor(0.9 * (sorted.length - 1))]];
  const top = roundUp(Math.max(2, highest > OUTLIER * usual ? 1.5 * usual : highest));
  const lines = [0, top / 2, top].map((value) => ({ value, label: grouped(value) }));
  return { top, lines, at: (value) => clamped(value / top) };
}

/** Rounds up to 2, 4, 6, 10, 20, 40, …: their halves are whole numbers. */
function roundUp(value: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 6, 10].find((each) => each * magnitude >= value) ?? 10;
  return Math.max(2, factor * magnitude);
}

function clamped(share: number): number {
  return Math.min(1, Math.max(0, share));
}
