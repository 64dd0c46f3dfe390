import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CHART, renderAlerts, requireHelm, testFolder } from '../support/deployment/chart.js';
import { matchersIn, metricsIn } from '../support/deployment/promql.js';
import { hasTool, requireTool, runTool } from '../support/deployment/tools.js';
import { testMetrics } from '../support/observed.js';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: unknown;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly { readonly expr: string; readonly datasource: unknown }[];
}

const FILE = join(CHART, 'dashboards', 'scanfeed.json');
const dashboard = JSON.parse(readFileSync(FILE, 'utf8'));
const panels: readonly Panel[] = dashboard.panels;
const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's template, not JavaScript's
const TEMPLATED = { type: 'prometheus', uid: '${datasource}' };

/** Every series that the daemon exports, as text, and their names. */
async function exported() {
  const { text } = await testMetrics({ nodeMetrics: true }).metrics.exposition();
  const samples = [...text.matchAll(/^(\w+)(?:\{| )/gm)].map(([, name]) => name);
  // Without one that was observed, a histogram has no samples.
  const histograms = [...text.matchAll(/^# TYPE (\w+) histogram/gm)].flatMap(([, name]) =>
    ['bucket', 'count', 'sum'].map((part) => `${name}_${part}`),
  );
  return { text, names: new Set([...samples, ...histograms]) };
}

const unexported = async (expression: string) => {
  const { names } = await exported();
  return metricsIn(expression).filter((name) => !names.has(name));
};

describe('what is asked of the daemon', () => {
  test('the dashboard asks for metrics that it exports', async () => {
    expect(expressions.length).toBeGreaterThan(20);
    expect(await unexported(expressions.join('\n'))).toEqual([]);
  });

  test('the alerts ask for metrics that it exports, with values of labels that exist', async (context) => {
    const rules = (await renderAlerts(requireHelm(context))).groups.flatMap((group) => group.rules);
    const { text } = await exported();
    for (const { alert, expr } of rules) {
      expect({ alert, metrics: metricsIn(expr).length > 0, unknown: await unexported(expr) }).toEqual({
        alert,
        metrics: true,
        unknown: [],
      });
      const matchers = matchersIn(expr).filter(({ label }) => label !== 'namespace');
      expect(matchers.filter(({ label, value }) => !text.includes(`${label}="${value}"`))).toEqual([]);
    }
  });

  test('a metric that does not exist is noticed', async () => {
    expect(await unexported('sum(rate(scanfeed_pools_total{feed="a"}[5m])) / scanfeed_lag_seconds')).toEqual([
      'scanfeed_pools_total',
    ]);
  });

  test('the dashboard shows every metric of its own that the daemon exports', async () => {
    const { text } = await exported();
    const families = [...text.matchAll(/^# TYPE (scanfeed_\w+)/gm)].map(([, name = '']) => name);
    const shown = metricsIn(expressions.join('\n')).map((name) => name.replace(/_(bucket|count|sum)$/, ''));
    expect(families.filter((name) => !shown.includes(name))).toEqual([]);
  });
});

// The rules of Grafana's dashboard-linter, which cannot be installed everywhere.
describe('the dashboard', () => {
  test('lets one choose the data source, the namespace and the feed', () => {
    expect(dashboard.templating.list).toMatchObject([
      { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
      { name: 'namespace', label: 'Namespace', type: 'query', datasource: TEMPLATED, refresh: 2 },
      { name: 'feed', label: 'Feed', type: 'query', datasource: TEMPLATED, refresh: 2 },
    ]);
    for (const expression of expressions) {
      const selectors = expression.match(/\{[^}]*\}/g) ?? [];
      expect(selectors).not.toEqual([]);
      for (const selector of selectors) expect(selector).toContain('namespace="$namespace", feed="$feed"');
    }
  });

  test('says of each panel what it shows, in which unit, and from where', () => {
    for (const { type, title, description, datasource, fieldConfig, targets } of panels) {
      if (type === 'row') continue;
      expect(`${title}: ${description}`).toMatch(/^\S.*: \S.*\.$/);
      expect(fieldConfig?.defaults.unit).toMatch(/^\w+$/);
      expect(datasource).toEqual(TEMPLATED);
      for (const target of targets ?? []) expect(target.datasource).toEqual(TEMPLATED);
    }
  });

  test('begins with freshness, and its panels do not overlap', () => {
    expect(panels.filter(({ type }) => type === 'row').map(({ title }) => title)).toEqual([
      'Freshness',
      'Throughput and outcomes',
      'Pending and quarantine',
      'Requests to the service',
      'Transactions',
      'Process',
    ]);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });

  test('takes rates over the interval that Grafana advises, and is changed in its file alone', () => {
    for (const expression of expressions) {
      const ranges = [...expression.matchAll(/\[([^\]]*)\]/g)].map(([, range]) => range);
      expect(ranges.filter((range) => range !== '$__rate_interval')).toEqual([]);
      // A counter without a rate says when the process began.
      expect(expression.replaceAll(/(?:rate|increase)\(\w+\{[^}]*\}\[[^\]]*\]\)/g, '')).not.toContain('_total{');
    }
    expect(dashboard).toMatchObject({ editable: false, uid: 'scanfeed' });
  });

  test('has expressions that Prometheus understands', async (context) => {
    requireTool(context, 'promtool');
    const rules = expressions.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }));
    const file = join(await testFolder(), 'rules.json');
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { status, stderr } = await runTool('promtool', ['check', 'rules', file]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  test('passes dashboard-linter', async ({ skip }) => {
    // It is not in every registry, so its absence is no failure even under CI.
    skip(!hasTool('dashboard-linter'), 'dashboard-linter is not installed');
    const { status, stdout, stderr } = await runTool('dashboard-linter', ['lint', '--strict', FILE]);
    expect(status, `${stdout}${stderr}`).toBe(0);
  });
});
