import { counted, describeSeconds, escapeHtml } from './html.js';
import { countScale, lagScale, type Scale } from './scales.js';
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
  const { cells } = window;
  const lags = cells.map(({ lagSeconds }) => lagSeconds);
  const scale = lagScale(known(lags));
  const failed = cells.flatMap(({ failures }, at) => (failures > 0 ? [bar('failed', cells, at, FOOT + 3, 4)] : []));
  return figure('lag', 'Lag', lagInWords(window), [
    `<desc id="lag-drawn">Highest lag ${period(window)}, on a logarithmic scale with lines at ${labels(scale)}; hatched where unknown. Marks at the bottom: failed attempts.</desc>`,
    ...plot('lag', lags, scale, window),
    ...failed,
  ]);
}

/** Renders the runs that this process stored. */
export function runsChart(window: Window): string {
  const counts = window.cells.map(({ runs }) => runs);
  const scale = countScale(known(counts));
  return figure('runs', 'Runs stored', runsInWords(window), [
    `<desc id="runs-drawn">Runs stored ${period(window)}, on a scale with lines at ${labels(scale)}; hatched where this process did not lead the feed.</desc>`,
    ...plot('runs', counts, scale, window),
  ]);
}

function figure(name: string, title: string, words: string, drawing: readonly string[]): string {
  return `<figure>
<h2>${title}</h2>
<svg role="img" aria-labelledby="${name}-title" aria-describedby="${name}-drawn ${name}-words" class="chart" height="${HEIGHT}">
<title id="${name}-title">${title}</title>
<defs><pattern id="${name}-unknown" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M3 0V6"/></pattern></defs>
${drawing.join('\n')}
</svg>
<figcaption id="${name}-words">${escapeHtml(words)}</figcaption>
</figure>`;
}

/** Renders a bar for each value, and hatching where values are unknown, so that they do not look like zero. */
function plot(name: string, values: readonly (number | null)[], scale: Scale, { length }: Window): string[] {
  const bars = values.flatMap((value, at) => {
    if (value === null) {
      const [x, width] = [percent(at / values.length), percent(1 / values.length)];
      return [
        `<rect class="unknown" fill="url(#${name}-unknown)" x="${x}" y="${TOP}" width="${width}" height="${PLOT}"/>`,
      ];
    }
    const height = Math.max(LOWEST_BAR, scale.at(value) * PLOT);
    return value === 0 ? [] : [bar('bar', values, at, FOOT - height, height)];
  });
  return [...grid(scale), ...bars, ...footOf(length)];
}

function bar(kind: string, cells: readonly unknown[], at: number, y: number, height: number): string {
  const [x, width] = [percent((at + 0.12) / cells.length), percent(0.76 / cells.length)];
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

function footOf(length: number): string[] {
  return [
    ['0', 'start', agoInWords(length)],
    ['50%', 'middle', agoInWords(length / 2)],
    ['100%', 'end', 'now'],
  ].map(([x, anchor, text]) => `<text x="${x}" y="${HEIGHT - 6}" text-anchor="${anchor}">${text}</text>`);
}

function lagInWords({ cells, length, minutesWithoutLag }: Window): string {
  const highest = Math.max(...known(cells.map(({ lagSeconds }) => lagSeconds)));
  const worst = cells.find(({ lagSeconds }) => lagSeconds === highest);
  const failures = cells.reduce((sum, cell) => sum + cell.failures, 0);
  const failed = failures === 0 ? '' : ` ${counted(failures, 'attempt')} failed.`;
  if (worst === undefined) return `No data yet for the last ${inWords(length)}.${failed}`;
  const when = `${new Date(worst.from).toISOString().slice(11, 16)} UTC`;
  return `Highest: ${describeSeconds(highest)}, about ${when}.${failed}${blank('Unknown', minutesWithoutLag)}`;
}

function runsInWords({ cells, length, minutesWithoutLead }: Window): string {
  const counts = known(cells.map(({ runs }) => runs));
  if (counts.length === 0) return `This process did not lead the feed in the last ${inWords(length)}.`;
  const sum = counts.reduce((total, runs) => total + runs, 0);
  const stored = `${counted(sum, 'run')} in the last ${inWords(length)}.`;
  return `${stored}${blank('This process did not lead, or did not run,', minutesWithoutLead)}`;
}

function blank(what: string, minutes: number): string {
  return minutes === 0 ? '' : ` ${what} for ${describeSeconds(minutes * 60)}.`;
}

function known(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

function labels({ lines }: Scale): string {
  return lines.map(({ label }) => label).join(', ');
}

/** Describes what a bar covers. */
function period({ minutesPerCell, length }: Window): string {
  return `in ${minutesPerCell === 1 ? 'each minute' : `every ${minutesPerCell} minutes`} of the last ${inWords(length)}`;
}

function inWords(minutes: number): string {
  if (minutes === 60) return 'hour';
  return minutes % 60 === 0 ? `${minutes / 60} hours` : `${minutes} minutes`;
}

function agoInWords(minutes: number): string {
  return minutes % 60 === 0 ? `${minutes / 60} h ago` : `${minutes} min ago`;
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(3))}%`;
}
