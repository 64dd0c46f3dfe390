/** Events of histories, counted to notice when histories cover less than before. */
const EVENTS = [
  'histories',
  'feeds',
  'deliveries',
  'late deliveries',
  'corrections',
  'truncated deliveries',
  'unusable deliveries',
  'assumed test modes',
  'rows',
  'page commits',
  'result commits',
  'pass commits',
  'fenced commits',
  'overtaking commits',
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
  'abandoned cursors',
  'rewinds',
  'lost commits',
] as const;

export type SimulationEvent = (typeof EVENTS)[number];
/** Number of times that each event happened. */
export type Coverage = Record<SimulationEvent, number>;

export function noCoverage(): Coverage {
  return Object.fromEntries(EVENTS.map((event) => [event, 0])) as Coverage;
}

export function addCoverage(to: Coverage, more: Coverage): void {
  for (const event of EVENTS) to[event] += more[event];
}

/** Returns the events that never happened. */
export function uncovered(coverage: Coverage): readonly SimulationEvent[] {
  return EVENTS.filter((event) => coverage[event] === 0);
}

/** @param of number of requested histories */
export function describeProgress({ histories }: Coverage, seconds: number, of: number): string {
  return `${count(histories)} of ${count(of)} histories: ${(histories / seconds).toFixed(0)} histories/s`;
}

/** Formats one line per event, with the average per history. */
export function describeCoverage(coverage: Coverage): string {
  const width = Math.max(...EVENTS.map((event) => count(coverage[event]).length));
  return EVENTS.filter((event) => event !== 'histories')
    .map((event) => {
      const average = (coverage[event] / Math.max(1, coverage.histories)).toFixed(2);
      return `  ${count(coverage[event]).padStart(width)} ${event}, ${average} per history`;
    })
    .join('\n');
}

function count(value: number): string {
  return value.toLocaleString('en');
}
