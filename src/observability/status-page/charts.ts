import { counted, describeSeconds, escapeHtml, grouped } from './html.js';
import { countScale, lagScale, type Scale } from './scales.js';
import type { Window } from './window.js';

/** Heights, pixels. Widths are in percent, so that text keeps its size on every screen. */
const TOP = 8;
const PLOT = 120;
const FOOT = TOP + PLOT;
const HEIGHT = FOOT + 30;
/** Position of the labels in the margin left of the chart, pixels. */
const LABELS = -8;

/** Renders the lag minute by minute, with marks for failed attempts at the bottom. */
export function lagChart(window: Window): string {
  const { minutes, length, cells } = window;
  const lags = minutes.map((minute) => minute?.lagSeconds ?? null);
  const scale = lagScale(known(lags));
  const drawn = `Highest lag in each minute of the last ${inWords(length)}, on a logarithmic scale with lines at ${labels(scale)}; hatched where unknown. Marks at the bottom: failed attempts.`;
  const failed = cells.flatMap(({ failures }, at) => (failures > 0 ? [bar('failed', cells, at, FOOT + 3, 4)] : []));
  return figure('lag', 'Lag', drawn, lagInWords(window), [
    ...unknown('lag', lags, length),
    ...grid(scale),
    `<svg y="${TOP}" width="100%" height="${PLOT}" viewBox="0 0 ${length} 1" preserveAspectRatio="none">`,
    ...rangesOf(lags, isKnown).map((range) => lineAndArea(lags, range, scale)),
    '</svg>',
    ...failed,
    ...footOf(length),
  ]);
}

/** Renders the runs that this process stored as bars. */
export function runsChart(window: Window): string {
  const { minutes, length, cells, minutesPerCell } = window;
  const counts = cells.map(({ runs }) => runs);
  const scale = countScale(known(counts));
  const drawn = `A bar for ${minutesPerCell === 1 ? 'each minute' : `every ${minutesPerCell} minutes`} of the last ${inWords(length)}, on a scale with lines at ${labels(scale)}; hatched where this process did not lead the feed.`;
  const bars = counts.flatMap((runs, at) => {
    if (!runs) return [];
    const height = Math.max(2, scale.at(runs) * PLOT);
    return [bar('bar', cells, at, FOOT - height, height)];
  });
  const leads = minutes.map((minute) => minute?.runs ?? null);
  return figure('runs', 'Runs stored', drawn, runsInWords(window), [
    ...unknown('runs', leads, length),
    ...grid(scale),
    ...bars,
    ...footOf(length),
  ]);
}

function figure(name: string, title: string, drawn: string, words: string, drawing: readonly string[]): string {
  return `<figure>
<h2>${title}</h2>
<svg role="img" aria-labelledby="${name}-title" aria-describedby="${name}-drawn ${name}-words" class="chart" height="${HEIGHT}">
<title id="${name}-title">${title}</title>
<desc id="${name}-drawn">${escapeHtml(drawn)}</desc>
<defs><pattern id="${name}-unknown" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M3 0V6"/></pattern></defs>
${drawing.join('\n')}
</svg>
<figcaption id="${name}-words">${escapeHtml(words)}</figcaption>
</figure>`;
}

/** Renders hatching where values are unknown, so that they do not look like zero. */
function unknown(name: string, values: readonly (number | null)[], length: number): string[] {
  return rangesOf(values, (value) => value === null).map(([from, to]) => {
    const [x, width] = [percent(from / length), percent((to - from) / length)];
    return `<rect class="unknown" fill="url(#${name}-unknown)" x="${x}" y="${TOP}" width="${width}" height="${PLOT}"/>`;
  });
}

/** Renders the line and the area below it, over minutes that are all known. */
function lineAndArea(values: readonly (number | null)[], [from, to]: readonly [number, number], scale: Scale): string {
  const heights = values.slice(from, to).map((value) => (1 - scale.at(value ?? 0)).toFixed(3));
  const line = heights.map((height, at) => `${at === 0 ? `M${from} ` : 'V'}${height}H${from + at + 1}`).join('');
  return `<path class="area" d="${line}V1H${from}Z"/><path class="line" d="${line}"/>`;
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

function lagInWords({ rows, minutes, length, minutesWithoutLag }: Window): string {
  const worst = minutes.reduce(
    (one, other) => ((other?.lagSeconds ?? -1) > (one?.lagSeconds ?? -1) ? other : one),
    null,
  );
  const failures = rows.reduce((sum, row) => sum + row.failures, 0);
  const failed = failures === 0 ? '' : ` ${counted(failures, 'attempt')} failed.`;
  if (worst?.lagSeconds == null) return `No data yet for the last ${inWords(length)}.${failed}`;
  const when = `${timeOfDay(worst.minute * 60_000)} UTC`;
  return `Highest: ${describeSeconds(worst.lagSeconds)}, at ${when}.${failed}${blank('Unknown', minutesWithoutLag)}`;
}

function runsInWords({ rows, length, minutesWithoutLead }: Window): string {
  const counts = known(rows.map(({ runs }) => runs));
  if (counts.length === 0) return `This process did not lead the feed in the last ${inWords(length)}.`;
  const sum = counts.reduce((total, runs) => total + runs, 0);
  const stored = `${counted(sum, 'run')} in the last ${inWords(length)}.`;
  return `${stored}${blank('This process did not lead, or did not run,', minutesWithoutLead)}`;
}

function blank(what: string, minutes: number): string {
  return minutes === 0 ? '' : ` ${what} for ${describeSeconds(minutes * 60)} (hatched).`;
}

/** Renders the figures of both charts as a table, for screen readers. */
export function chartTable({ rows, length, minutesPerRow }: Window): string {
  const cells = [...rows].reverse().map(({ from, lagSeconds, runs, failures }) => {
    const lag = lagSeconds === null ? 'unknown' : describeSeconds(lagSeconds);
    const stored = runs === null ? 'did not lead' : grouped(runs);
    return `<tr><th scope="row">${timeOfDay(from)}</th><td>${lag}</td><td>${stored}</td><td>${failures}</td></tr>`;
  });
  return `<details>
<summary>The charts as a table</summary>
<table>
<caption>The last ${inWords(length)}, latest first, ${minutesPerRow} minutes per row</caption>
<thead><tr><th scope="col">From (UTC)</th><th scope="col">Highest lag</th><th scope="col">Runs stored</th><th scope="col">Failed attempts</th></tr></thead>
<tbody>
${cells.join('\n')}
</tbody>
</table>
</details>`;
}

/** Returns the ranges of consecutive values that match, as index of the first and index after the last. */
function rangesOf<T>(values: readonly T[], matches: (value: T) => boolean): (readonly [number, number])[] {
  const borders = values.flatMap((value, at) => {
    const before = values[at - 1];
    return matches(value) === (at > 0 && matches(before as T)) ? [] : [at];
  });
  return borders.flatMap((from, at) => (at % 2 === 0 ? [[from, borders[at + 1] ?? values.length] as const] : []));
}

function isKnown(value: number | null): value is number {
  return value !== null;
}

function known(values: readonly (number | null)[]): number[] {
  return values.filter(isKnown);
}

function labels({ lines }: Scale): string {
  return lines.map(({ label }) => label).join(', ');
}

function inWords(minutes: number): string {
  if (minutes === 60) return 'hour';
  return minutes % 60 === 0 ? `${minutes / 60} hours` : `${minutes} minutes`;
}

function agoInWords(minutes: number): string {
  return minutes % 60 === 0 ? `${minutes / 60} h ago` : `${minutes} min ago`;
}

function timeOfDay(ms: number): string {
  return new Date(ms).toISOString().slice(11, 16);
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(3))}%`;
}
