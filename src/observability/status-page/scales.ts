import { grouped } from './html.js';

/** The vertical scale of a chart. */
export interface Scale {
  /** Horizontal grid lines. */
  readonly lines: readonly Step[];
  /** Returns the height of a value, from 0 (bottom) to 1 (top). */
  at(value: number): number;
}

interface Step {
  readonly value: number;
  readonly label: string;
}

export const LAG_STEPS: readonly Step[] = [
  { value: 1, label: '1 s' },
  { value: 10, label: '10 s' },
  { value: 60, label: '1 min' },
  { value: 600, label: '10 min' },
  { value: 3_600, label: '1 h' },
  { value: 21_600, label: '6 h' },
  { value: 86_400, label: '1 d' },
  { value: 604_800, label: '7 d' },
  { value: 2_592_000, label: '30 d' },
  { value: 31_536_000, label: '1 y' },
  { value: 315_360_000, label: '10 y' },
];
/** Zero is as far below 1 as 1 is below 10. */
export const COUNT_STEPS: readonly Step[] = [0.1, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000].map((value) => ({
  value,
  label: grouped(Math.floor(value)),
}));
/** Maximum number of grid lines. */
const MAX_LINES = 5;

/** Returns a logarithmic scale, so that one chart shows usual values next to those of an outage or of an initial sync. */
export function logScale(values: readonly number[], steps: readonly Step[]): Scale {
  const least = values.length === 0 ? 0 : Math.min(...values);
  // Starts well below the lowest value, so that it does not look like zero.
  const from = Math.max(
    0,
    steps.slice(0, -1).findLastIndex(({ value }) => value <= least / 2),
  );
  const most = Math.max(steps[2]?.value ?? 0, ...values);
  const beyond = steps.findIndex(({ value }, index) => value >= most && index > from);
  const spanned = steps.slice(from, beyond === -1 ? undefined : beyond + 1);
  const [foot = 1, top = 1] = [spanned[0]?.value, spanned.at(-1)?.value];
  const stride = Math.ceil(spanned.length / MAX_LINES);
  return {
    lines: spanned.filter((_, index) => index % stride === 0),
    at: (value) => Math.min(1, Math.log(Math.max(value, foot) / foot) / Math.log(top / foot)),
  };
}
