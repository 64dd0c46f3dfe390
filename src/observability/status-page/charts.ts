import { counted, describeSeconds, escapeHtml } from './html.js';
import { COUNT_STEPS, LAG_STEPS, logScale, type Scale } from './scales.js';
import type { Window } from './window.js';

/** Heights, pixels. Widths are in percent, so that text keeps its size on every screen. */
const TOP = 8;
const PLOT = 120;
const FOOT = TOP + PLOT;
const HEIGHT = FOOT + 30;
/** Minimum height of a bar, so that a small value does not look like none. */
const LOWEST_BAR = 2;
/** Position of the labels in the margin left of the chart, pixels. */
const LABELS = -8;

/** Renders the lag, with marks for failed attempts at the bottom. */
export function lagChart(window: Window): string {
  const lags = window.cells.map(({ lagSeconds }) => lagSeconds);
  const failed = window.cells.flatMap(({ failures }, at) =>
    failures > 0 ? [bar('failed', window, at, FOOT + 3, 4)] : [],
  );
  const scale = logScale(known(lags), LAG_STEPS);
  const blank = 'hatched where unknown. Marks at the bottom: failed attempts';
  const drawn = `Highest lag ${period(window)}, ${onScale(scale)}; ${blank}.`;
  return figure('lag', 'Lag', drawn, [...plot('lag', lags, scale, window), ...failed], lagInWords(window));
}

/** Renders the runs that this process stored. */
export function runsChart(window: Window): string {
  const counts = window.cells.map(({ runs }) => runs);
  const scale = logScale(known(counts), COUNT_STEPS);
  const blank = 'hatched where this process did not lead the feed';
  const drawn = `Runs stored ${period(window)}, ${onScale(scale)}; ${blank}.`;
  return figure('runs', 'Runs stored', drawn, plot('runs', counts, scale, window), runsInWords(window));
}

function figure(name: string, title: string, drawn: string, drawing: readonly string[], words: string): string {
  return `<figure>
<h2>${title}</h2>
<svg role="img" aria-labelledby="${name}-title" aria-describedby="${name}-drawn ${name}-words" class="chart" height="${HEIGHT}">
<title id="${name}-title">${title}</title>
<desc id="${name}-drawn">${drawn}</desc>
<defs><pattern id="${name}-unknown" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M3 0V6"/></pattern></defs>
${drawing.join('\n')}
</svg>
<figcaption id="${name}-words">${escapeHtml(words)}</figcaption>
</figure>`;
}

/** Renders a bar for each value, and hatching where values are unknown, so that they do not look like zero. */
function plot(name: string, values: readonly (number | null)[], scale: Scale, window: Window): string[] {
  const share = window.minutesPerCell / window.length;
  const bars = values.flatMap((value, at) => {
    if (value === null) {
      const [x, width] = [percent(at * share), percent(share)];
      return [
        `<rect class="unknown" fill="url(#${name}-unknown)" x="${x}" y="${TOP}" width="${width}" height="${PLOT}"/>`,
      ];
    }
    const height = Math.max(LOWEST_BAR, scale.at(value) * PLOT);
    if (value === 0) return [];
    return [bar('bar', window, at, FOOT - height, height)];
  });
  return [...grid(scale), ...bars, ...footOf(window)];
}

function bar(kind: string, { minutesPerCell, length }: Window, at: number, y: number, height: number): string {
  const share = minutesPerCell / length;
  const [x, width] = [percent((at + 0.12) * share), percent(0.76 * share)];
  return `<rect class="${kind}" x="${x}" y="${y.toFixed(1)}" width="${width}" height="${height.toFixed(1)}"/>`;
}

function grid(scale: Scale): string[] {
  return scale.lines.flatMap(({ value, label }) => {
    const y = (FOOT - scale.at(value) * PLOT).toFixed(1);
    return [
      `<line class="grid" x1="0" x2="100%" y1="${y}" y2="${y}"/>`,
      `<text class="value" x="${LABELS}" y="${y}" text-anchor="end">${label}</text>`,
    ];
  });
}

function footOf({ first, length }: Window): string[] {
  const timeAt = (minute: number) => timeOf((first + minute) * 60_000);
  const middle = Math.floor(length / 2); // labels are whole minutes
  return [
    ['0', 'start', timeAt(0)],
    ...(middle > 0 ? [[percent(middle / length), 'middle', timeAt(middle)]] : []),
    ['100%', 'end', `${timeAt(length)} UTC`],
  ].map(([x, anchor, text]) => `<text x="${x}" y="${HEIGHT - 6}" text-anchor="${anchor}">${text}</text>`);
}

function lagInWords({ cells, minutes, minutesWithoutLag }: Window): string {
  const highest = Math.max(...known(cells.map(({ lagSeconds }) => lagSeconds)));
  const worst = cells.find(({ lagSeconds }) => lagSeconds === highest);
  const failures = cells.reduce((sum, cell) => sum + cell.failures, 0);
  const failed = failures === 0 ? '' : ` ${counted(failures, 'attempt')} failed.`;
  if (worst === undefined) return `No data yet for the last ${inWords(minutes)}.${failed}`;
  return `Highest: ${describeSeconds(highest)}, about ${timeOf(worst.from)} UTC.${failed}${blank('Unknown', minutesWithoutLag)}`;
}

function runsInWords({ cells, minutes, minutesWithoutLead }: Window): string {
  const counts = known(cells.map(({ runs }) => runs));
  if (counts.length === 0) return `This process did not lead the feed in the last ${inWords(minutes)}.`;
  const sum = counts.reduce((total, runs) => total + runs, 0);
  return `${counted(sum, 'run')} in the last ${inWords(minutes)}.${blank('This process did not lead, or did not run,', minutesWithoutLead)}`;
}

function blank(what: string, minutes: number): string {
  return minutes === 0 ? '' : ` ${what} for ${describeSeconds(minutes * 60)}.`;
}

function known(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

function onScale({ lines }: Scale): string {
  return `on a logarithmic scale with lines at ${lines.map(({ label }) => label).join(', ')}`;
}

/** Describes what a bar covers. */
function period({ minutesPerCell, minutes }: Window): string {
  return `in ${minutesPerCell === 1 ? 'each minute' : `every ${minutesPerCell} minutes`} of the last ${inWords(minutes)}`;
}

function inWords(minutes: number): string {
  return describeSeconds(minutes * 60);
}

/** Returns the time of day in UTC. @param ms since 1970 */
function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 16);
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(3))}%`;
}
