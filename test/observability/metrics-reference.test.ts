import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { everythingOccurred, testMetrics } from '../support/observed.js';

const REFERENCE = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');

interface Described {
  type: string;
  labels: Record<string, string[]>;
  buckets: string[];
}

/** What the reference says of each of scanfeed's own metrics: headings, nested lists and lines of buckets. */
function readReference(): Record<string, Described> {
  const metrics: Record<string, Described> = {};
  let current: Described | undefined;
  let label = '';
  for (const line of REFERENCE.split('\n')) {
    const [, name, type] = /^### `(\w+)` \((\w+)\)$/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) metrics[name] = current = { type, labels: {}, buckets: [] };
    if (line.startsWith('## ')) current = undefined;
    if (current === undefined) continue;
    label = /^- `(\w+)`$/.exec(line)?.[1] ?? label;
    const values = /^ {2}- ((?:`\w+`(?:, )?)+): \S/.exec(line)?.[1];
    if (values !== undefined)
      current.labels[label] = [...(current.labels[label] ?? []), ...(values.match(/\w+/g) ?? [])];
    current.buckets = /^Buckets: (.+)$/.exec(line)?.[1]?.split(', ') ?? current.buckets;
  }
  return metrics;
}

/** The same of the live exposition. */
function readExposition(text: string): Record<string, Described> {
  const metrics: Record<string, Described> = {};
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (scanfeed_\w+) (\w+)$/gm)) {
    const series = [...text.matchAll(new RegExp(`^${name}(?:_bucket)?\\{(.*)\\} `, 'gm'))];
    const pairs = series.flatMap(([, labels = '']) => [...labels.matchAll(/(\w+)="([^"]*)"/g)]);
    const labels: Record<string, string[]> = {};
    for (const [, label = '', value = ''] of pairs) labels[label] = [...new Set(labels[label]).add(value)];
    const { feed, version, le = [], ...listed } = labels;
    expect(feed).toEqual(['invoices']);
    expect(version !== undefined).toBe(name === 'scanfeed_build_info');
    if (name === 'scanfeed_failing') delete listed.kind; // as those of the errors
    metrics[name] = { type, labels: listed, buckets: le.filter((bound) => bound !== '+Inf') };
  }
  return metrics;
}

/** In no particular order, but for the buckets. */
function sorted(metrics: Record<string, Described>) {
  return Object.fromEntries(
    Object.entries(metrics)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, { type, labels, buckets }]) => {
        const ordered = Object.entries(labels).map(([label, values]) => [label, [...values].sort()] as const);
        return [name, { type, labels: Object.fromEntries(ordered), buckets }];
      }),
  );
}

describe('docs/metrics.md', () => {
  test('lists every metric with its type, label values and buckets', async () => {
    const text = await everythingOccurred();
    const live = readExposition(text);
    expect(Object.keys(live).length).toBeGreaterThan(20);
    expect(sorted(readReference())).toEqual(sorted(live));
  });

  // The library offers fewer of them on other systems.
  test.runIf(process.platform === 'linux')('lists the metrics of Node and the process', async () => {
    const { text } = await testMetrics().metrics.exposition();
    const live = [...text.matchAll(/^# TYPE ((?:nodejs|process)_\w+) (\w+)$/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    const listed = [...REFERENCE.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, type]) => `${name} ${type}`);
    expect(listed.sort()).toEqual(live.sort());
  });
});
