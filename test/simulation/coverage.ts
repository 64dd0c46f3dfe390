/** Events of histories, counted to notice when histories cover less than before. */
const HAPPENINGS = [
  'histories',
  'deliveries',
  'late deliveries',
  'corrections',
  'truncated deliveries',
  'unusable deliveries',
  'rows',
  'page commits',
  'result commits',
  'pass commits',
  'fenced commits',
  'recent passes',
  'full passes',
  'history passes',
  'backfill passes',
  'downloads',
  'failed requests',
  'crashes',
  'freezes',
  'slow statements',
  'lost statements',
  'cut statements',
  'late statements',
  'cursors left',
  'rewinds',
  'lost commits',
] as const;

export type Happening = (typeof HAPPENINGS)[number];
/** Number of times that each event happened. */
export type Coverage = Record<Happening, number>;

export function noCoverage(): Coverage {
  return Object.fromEntries(HAPPENINGS.map((what) => [what, 0])) as Coverage;
}

export function addCoverage(to: Coverage, more: Coverage): void {
  for (const what of HAPPENINGS) to[what] += more[what];
}

/** Returns the events that never happened. */
export function uncovered(coverage: Coverage): readonly Happening[] {
  return HAPPENINGS.filter((what) => coverage[what] === 0);
}

/** @param of number of requested histories */
export function toldProgress({ histories }: Coverage, seconds: number, of: number): string {
  return `${count(histories)} of ${count(of)} histories: ${(histories / seconds).toFixed(0)} seeds/s`;
}

/** Formats one line per event, with the average per history. */
export function toldCoverage(coverage: Coverage): string {
  const width = Math.max(...HAPPENINGS.map((what) => count(coverage[what]).length));
  return HAPPENINGS.filter((what) => what !== 'histories')
    .map((what) => {
      const average = (coverage[what] / Math.max(1, coverage.histories)).toFixed(2);
      return `  ${count(coverage[what]).padStart(width)} ${what}, ${average} a history`;
    })
    .join('\n');
}

function count(value: number): string {
  return value.toLocaleString('en');
}
