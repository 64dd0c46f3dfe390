import { describe, expect, test } from 'vitest';
import { projectFiles, readText } from '../support/documents.js';

const MEASUREMENTS = 'docs/measurements.md';
const measurements = readText(MEASUREMENTS);

const numbersOf = (text: string): string[] =>
  [...text.matchAll(/\d[\d,]*(?:\.\d+)?/g)].map(([number]) => number.replaceAll(',', ''));

/** Numbers with a unit of what is measured, such as `104 MiB`: settings and versions have others. */
const quantitiesOf = (text: string): string[] =>
  [...text.matchAll(/(\d[\d,]*(?:\.\d+)?) ?(%|×|µs|ms|s|MiB|runs\/s|times)(?![\w/])/g)].map(
    ([, number = '', unit = '']) => `${number.replaceAll(',', '')} ${unit}`,
  );

const numbers = new Set(numbersOf(measurements));
const quantities = new Set(quantitiesOf(measurements));

/** Rates and ratios have their unit in the head of their table. */
const isMeasured = (quantity: string): boolean =>
  quantities.has(quantity) || (/ (?:×|times|runs\/s)$/.test(quantity) && numbers.has(quantity.split(' ')[0] ?? ''));

/** Names of figures: the rows of the tables of measurements.md, as far as they say what they are, and their other names. */
const NAMES: readonly string[] = [
  ...[...measurements.matchAll(/^\| ([^|]+?) \|/gm)]
    .map(([, label = '']) => label.replace(/^at rest: /, '').toLowerCase())
    .filter((label) => label.length >= 12 && label.includes(' ')),
  ...['at rest', 'bare node.js', 'bare `copy`', 'lookup by invoice number', 'sums by partner', 'scrape takes'],
  ...['memory at its most', 'takeover after', 'restart after kill', 'from the feed to the table', 'redelivery'],
  'without a content-length',
];

/** Sentences of a page and rows of its tables, without code, targets of links, and goals. */
function statementsOf(text: string): string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/\]\([^)]*\)/g, ']');
  return prose.split(/\n(?=\n|[-*|#]|\d+\. )/).flatMap((block) => {
    const line = block.replaceAll('\n', ' ').trim();
    if (line.startsWith('|')) return [line];
    return line.split(/(?<=[.;]) /);
  });
}

const withoutGoals = (page: string, text: string) =>
  page === 'docs/performance.md' ? text.replaceAll(/^(\|.*\|.*\|)[^|]*\|$/gm, '$1') : text;

/** Statements with the name of a measured figure and a quantity that was not measured. */
function contradictions(page: string, text: string): string[] {
  return statementsOf(withoutGoals(page, text)).filter(
    (statement) =>
      NAMES.some((name) => statement.toLowerCase().includes(name)) &&
      quantitiesOf(statement).some((quantity) => !isMeasured(quantity)),
  );
}

/** Decisions record what was measured when they were made. */
const pages = projectFiles().filter(
  (path) => /^(README|docs\/(?!decisions\/).*)\.md$/.test(path) && path !== MEASUREMENTS,
);

test.each(pages)(`%s repeats no figure of ${MEASUREMENTS} with another value`, (page) => {
  expect(contradictions(page, readText(page))).toEqual([]);
});

test('every measured figure of docs/performance.md is in docs/measurements.md', () => {
  const rows = [...readText('docs/performance.md').matchAll(/^\| (.+?) \| (\d[^|]*) \|/gm)];
  expect(rows.length).toBeGreaterThan(10);
  const own = rows.filter(([, name = '']) => !name.startsWith('image:'));
  expect(own.filter(([, , value = '']) => numbersOf(value).some((number) => !numbers.has(number)))).toEqual([]);
});

describe('contradictions', () => {
  test('finds a figure with another value, in a sentence and in a table', () => {
    expect(
      contradictions('a.md', 'It polls. Memory at rest is 108 MiB.\n\n| a lookup in 150,000 runs | 1.4 s |'),
    ).toEqual(['Memory at rest is 108 MiB.', '| a lookup in 150,000 runs | 1.4 s |']);
  });

  test('accepts the measured value, and other figures', () => {
    const [, memory] = /^\| memory at rest \| (\d+) MiB/m.exec(measurements) ?? [];
    expect(contradictions('a.md', `Memory at rest is ${memory} MiB. A poll takes 7.77 s.`)).toEqual([]);
  });
});
