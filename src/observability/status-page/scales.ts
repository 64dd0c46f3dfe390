/** Where a value stands between the foot (0) and the top (1) of a chart, and the lines across it. */
export interface Scale {
  readonly lines: readonly { readonly value: number; readonly label: string }[];
  at(value: number): number;
}

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
const MOST_LINES = 5;

/** Logarithmic: seconds in good times, and days after an outage, are to be seen on one chart. */
export function lagScale(lags: readonly number[]): Scale {
  const least = lags.length === 0 ? 0 : Math.min(...lags);
  // Some way beneath the least, which must not look like none.
  const from = Math.max(
    0,
    LAGS.slice(0, -1).findLastIndex(([seconds]) => seconds <= least / 2),
  );
  const most = Math.max(60, ...lags);
  const beyond = LAGS.findIndex(([seconds], index) => seconds >= most && index > from);
  const steps = LAGS.slice(from, beyond === -1 ? undefined : beyond + 1);
  const [foot = 1] = steps[0] ?? [];
  const [top = 60] = steps.at(-1) ?? [];
  const stride = Math.ceil(steps.length / MOST_LINES);
  const lines = steps.filter((_, index) => index % stride === 0);
  return {
    lines: lines.map(([value, label]) => ({ value, label })),
    at: (value) => clamped(Math.log(Math.max(value, foot) / foot) / Math.log(top / foot)),
  };
}

/** Linear, from none to a round number. */
export function countScale(counts: readonly number[]): Scale {
  const top = roundUp(Math.max(2, ...counts));
  const lines = [0, top / 2, top].map((value) => ({ value, label: value.toLocaleString('en') }));
  return { lines, at: (value) => clamped(value / top) };
}

/** To 2, 4, 6, 10, 20, 40, …: halves of them are whole. */
function roundUp(value: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 6, 10].find((each) => each * magnitude >= value) ?? 10;
  return Math.max(2, factor * magnitude);
}

function clamped(share: number): number {
  return Math.min(1, Math.max(0, share));
}
