import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, type TestContext, test } from 'vitest';
import { packageVersion } from '../../src/core/package.js';
import {
  CHART,
  JOB,
  ONE_FEED,
  REQUIRED,
  render,
  renderAlerts,
  requireHelm,
  TWO_FEEDS,
  testFolder,
} from '../support/deployment/chart.js';
import { matchersIn, metricsIn } from '../support/deployment/promql.js';
import { hasTool, requireTool, runTool } from '../support/deployment/tools.js';
import { everythingOccurred, testMetrics } from '../support/observed.js';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: unknown;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly { readonly expr: string; readonly datasource: unknown }[];
}

const FOLDER = join(CHART, 'dashboards');
const readDashboard = (name: string) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));
const panelsOf = (dashboard: { panels: readonly Panel[] }) => dashboard.panels;
const expressionsOf = (dashboard: { panels: readonly Panel[] }) =>
  panelsOf(dashboard).flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** A rate of a metric, with its name and its matchers. */
const RATE = /\b(?:rate|increase)\((\w+)\{([^}]*)\}\[[^\]]*\]\)/g;

const NAMES = ['scanfeed.json', 'all-feeds.json'] as const;
const [feedDashboard, allFeedsDashboard] = NAMES.map(readDashboard);
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's template, not JavaScript's
const TEMPLATED = { type: 'prometheus', uid: '${datasource}' };

/** The labels of every metric of a process. @param feed null: it follows several feeds */
const labelsOf = (feed: string | null) => (feed === null ? {} : { feed });

/** Every series that the daemon exports, as text, and their names. @param feed null: several feeds */
async function exported(feed: string | null = 'invoices') {
  const text = await everythingOccurred({ labels: labelsOf(feed) });
  const names = [...text.matchAll(/^# TYPE (\w+) (\w+)/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? ['bucket', 'count', 'sum'].map((part) => `${name}_${part}`) : [name],
  );
  return { text, names: new Set(names) };
}

const unexported = async (expression: string, feed?: string | null) => {
  const { names } = await exported(feed);
  return metricsIn(expression).filter((name) => !names.has(name));
};

describe('the queries of the dashboards', () => {
  test.each(NAMES)('the dashboard %s asks for metrics that it exports', async (name) => {
    const expressions = expressionsOf(readDashboard(name));
    expect(expressions.length).toBeGreaterThan(10);
    expect(await unexported(expressions.join('\n'))).toEqual([]);
  });

  test.for([
    ['one feed', 'invoices', ONE_FEED],
    ['several feeds', null, TWO_FEEDS],
  ] as const)(
    'the alerts of %s ask for metrics and values of labels that it exports',
    async ([, feed, feeds], context) => {
      const rules = (await renderAlerts(requireHelm(context), {}, feeds)).groups.flatMap((group) => group.rules);
      const { text } = await exported(feed);
      for (const { alert, expr } of rules) {
        expect({ alert, metrics: metricsIn(expr).length > 0, unknown: await unexported(expr, feed) }).toEqual({
          alert,
          metrics: true,
          unknown: [],
        });
        const matchers = matchersIn(expr).filter(({ label }) => label !== 'namespace' && label !== 'job');
        expect(matchers.filter(({ label, value }) => !text.includes(`${label}="${value}"`))).toEqual([]);
      }
    },
  );

  test.for([
    ['one feed', 'invoices', ONE_FEED],
    ['several feeds', null, TWO_FEEDS],
  ] as const)(
    'the series of %s that a rate reads exist from the start, or count as new',
    async ([, feed, feeds], context) => {
      const rules = (await renderAlerts(requireHelm(context), {}, feeds)).groups.flatMap((group) => group.rules);
      const expressions = [
        ...rules.map(({ expr }) => expr),
        ...NAMES.flatMap((name) => expressionsOf(readDashboard(name))),
      ];
      const own = (text: string) => [...text.matchAll(/^(scanfeed_\w+)(?:\{(.*)\})? /gm)];
      const atStart = own((await testMetrics({ labels: labelsOf(feed) }).metrics.exposition()).text);
      const later = own(await everythingOccurred({ labels: labelsOf(feed) }));
      const rates = expressions.flatMap((expr) =>
        [...expr.matchAll(RATE)].map(([, name = '', matchers = '']) => ({ expr, name, matchers })),
      );
      expect(rates.length).toBeGreaterThan(20);
      const missing = rates.flatMap(({ expr, name, matchers }) => {
        if (!name.startsWith('scanfeed_')) return [];
        const chosen = matchersIn(matchers).filter(({ label }) => !['namespace', 'job', 'feed'].includes(label));
        const read = (series: RegExpExecArray[]) =>
          series
            .filter(
              ([, of, labels = '']) =>
                of === name &&
                (chosen.length === 0 || chosen.some(({ label, value }) => labels.includes(`${label}="${value}"`))),
            )
            .map(([line]) => line.replace(/ $/, ''));
        const found = read(atStart);
        expect({ expr, name, exists: found.length > 0 }).toEqual({ expr, name, exists: true });
        // The shape of a distribution does not need the first of its values.
        if (name.endsWith('_bucket') || expr.includes(`unless ${name}{`) || expr.includes('unless count_over_time'))
          return [];
        return read(later).filter((series) => !found.includes(series));
      });
      expect(missing).toEqual([]);
    },
  );

  test('a metric that does not exist is noticed', async () => {
    expect(await unexported('sum(rate(scanfeed_pools_total{feed="a"}[5m])) / scanfeed_lag_seconds')).toEqual([
      'scanfeed_pools_total',
    ]);
  });

  test('the dashboard shows every metric of its own that the daemon exports', async () => {
    const { text } = await exported();
    const families = [...text.matchAll(/^# TYPE (scanfeed_\w+)/gm)].map(([, name = '']) => name);
    const shown = metricsIn(expressionsOf(feedDashboard).join('\n')).map((name) =>
      name.replace(/_(bucket|count|sum)$/, ''),
    );
    // How many feeds a process leads is not a figure of one feed.
    expect(families.filter((name) => !shown.includes(name))).toEqual(['scanfeed_feeds']);
  });
});

// The rules of Grafana's dashboard-linter, which cannot be installed everywhere.
describe.each(NAMES)('the dashboard %s', (name) => {
  const dashboard = readDashboard(name);
  const panels = panelsOf(dashboard);
  const expressions = expressionsOf(dashboard);

  test('says of each panel what it shows, in which unit, and from where', () => {
    for (const { type, title, description, datasource, fieldConfig, targets } of panels) {
      if (type === 'row') continue;
      expect(`${title}: ${description}`).toMatch(/^\S.*: \S.*\.$/);
      expect(fieldConfig?.defaults.unit).toMatch(/^\w+$/);
      expect(datasource).toEqual(TEMPLATED);
      for (const target of targets ?? []) expect(target.datasource).toEqual(TEMPLATED);
    }
  });

  test('has panels that do not overlap', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  test('takes rates over the interval that Grafana advises, and is changed in its file alone', () => {
    for (const expression of expressions) {
      const ranges = [...expression.matchAll(/\[([^\]]*)\]/g)].map(([, range]) => range);
      expect(ranges.filter((range) => range !== '$__rate_interval')).toEqual([]);
      // A counter without a rate says when the process began.
      const countsNew = /\((\w+\{[^}]*\}) unless \1 offset \$__rate_interval\) or increase\(\1\[/g;
      const rest = expression.replaceAll(countsNew, 'increase($1[').replaceAll(RATE, '');
      expect(rest).not.toContain('_total{');
    }
    expect(dashboard).toMatchObject({ editable: false, tags: ['scanfeed'] });
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

  test('begins with what fails, and links to the other dashboards and to the runbooks of this version', async () => {
    const [first, ...rows] = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect([first, panels[1]?.title]).toEqual(['Problems', 'Firing alerts']);
    expect(rows.length).toBeGreaterThan(0);
    const released = `https://github.com/scanfeed/scanfeed/blob/v${packageVersion()}/`;
    const text = readFileSync(join(FOLDER, name), 'utf8');
    const updated = text.replace(/https:\/\/github\.com\/scanfeed\/scanfeed\/blob\/v[^/]+\//g, released);
    await expect(updated).toMatchFileSnapshot(join(FOLDER, name));
    const { links, panels: updatedPanels } = JSON.parse(updated);
    expect(links).toMatchObject([
      { type: 'dashboards', tags: ['scanfeed'] },
      { url: `${released}docs/runbooks/README.md` },
    ]);
    const alerts = updatedPanels.find(({ type, title }: Panel) => type === 'table' && title === 'Firing alerts');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's template, not JavaScript's
    expect(JSON.stringify(alerts)).toContain(`"url":"${released}docs/runbooks/${'${__value.raw}'}.md"`);
  });

  test('passes dashboard-linter', async ({ skip }) => {
    // It is not in every registry, so its absence is no failure even under CI.
    skip(!hasTool('dashboard-linter'), 'dashboard-linter is not installed');
    const { status, stdout, stderr } = await runTool('dashboard-linter', ['lint', '--strict', join(FOLDER, name)]);
    expect(status, `${stdout}${stderr}`).toBe(0);
  });
});

const DATASOURCE = { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' };
const QUERY = { type: 'query', datasource: TEMPLATED, refresh: 2 };

test('the dashboard of a feed lets one choose the data source, the namespace, the job and the feed', () => {
  expect(feedDashboard.uid).toBe('scanfeed');
  expect(feedDashboard.templating.list).toMatchObject([
    DATASOURCE,
    { ...QUERY, name: 'namespace', label: 'Namespace' },
    { ...QUERY, name: 'job', label: 'Job', query: 'label_values(scanfeed_build_info{namespace="$namespace"}, job)' },
    {
      ...QUERY,
      name: 'feed',
      label: 'Feed',
      query: 'label_values(scanfeed_build_info{namespace="$namespace", job="$job"}, feed)',
    },
  ]);
});

test('the dashboard of a feed selects the series of one release', () => {
  const annotations = feedDashboard.annotations.list.map(({ expr }: { expr: string }) => expr);
  for (const expression of [...expressionsOf(feedDashboard), ...annotations]) {
    const selected = [...expression.matchAll(/(\w+)\{([^}]*)\}/g)];
    expect(selected).not.toEqual([]);
    for (const [, name = '', selector] of selected) {
      // Alerts that select by labels of the operator's choice have no job.
      const job = name.startsWith('ALERTS') ? 'job=~"$job|"' : 'job="$job"';
      expect(selector).toContain(`namespace="$namespace", ${job}, feed="$feed"`);
    }
  }
});

describe('the dashboard of all feeds', () => {
  test('lets one choose namespaces, and links to the dashboard of each feed', () => {
    expect(allFeedsDashboard.uid).toBe('scanfeed-all-feeds');
    const namespace = { ...QUERY, name: 'namespace', label: 'Namespace', multi: true, includeAll: true };
    expect(allFeedsDashboard.templating.list).toMatchObject([DATASOURCE, namespace]);
    for (const expression of expressionsOf(allFeedsDashboard)) {
      for (const selector of expression.match(/\{[^}]*\}/g) ?? [])
        expect(selector).toContain('namespace=~"$namespace"');
      for (const grouping of expression.match(/ by \([^)]*\)/g) ?? [])
        expect(grouping).toContain('(namespace, job, feed');
    }
    const [, query = ''] = /"url":"\/d\/scanfeed\?([^"]*)"/.exec(JSON.stringify(allFeedsDashboard)) ?? [];
    const variables = feedDashboard.templating.list.map(({ name }: { name: string }) => `var-${name}`);
    expect([...new URLSearchParams(query).keys()]).toEqual(variables);
  });

  test('has a row for each feed of each release, and shows which ones fail', async (context) => {
    requireTool(context, 'promtool');
    const labels = (feed: string, more = '', job = 'documents/a') =>
      `{namespace="documents",job="${job}",feed="${feed}"${more}}`;
    const ofOtherRelease = labels('invoices', '', 'documents/b');
    const alert = labels('letters', ',alertname="ScanfeedLagHigh",severity="warning"');
    const input = {
      [`scanfeed_lag_seconds${labels('invoices', ',pod="a"')}`]: 4,
      [`scanfeed_lag_seconds${labels('invoices', ',pod="b"')}`]: 900,
      [`scanfeed_lag_seconds${labels('letters')}`]: 900,
      [`scanfeed_lag_seconds${ofOtherRelease}`]: 700,
      [`scanfeed_leader${labels('invoices')}`]: 1,
      [`scanfeed_leader${labels('letters')}`]: 0,
      [`scanfeed_failing${labels('invoices', ',stage="feed"')}`]: 0,
      [`scanfeed_failing${labels('letters', ',stage="feed"')}`]: 1,
      [`ALERTS${alert.replace('}', ',alertstate="firing"}')}`]: 1,
      [`ALERTS_FOR_STATE${alert}`]: 60,
      [`ALERTS${labels('invoices', ',alertname="ScanfeedLagHigh",severity="warning",alertstate="pending"')}`]: 1,
      [`ALERTS_FOR_STATE${labels('invoices', ',alertname="ScanfeedLagHigh",severity="warning"')}`]: 90,
    };
    const queries = (title: string, type: string) =>
      expressionsOf({
        panels: panelsOf(allFeedsDashboard).filter((panel) => panel.title === title && panel.type === type),
      });
    const expected: readonly (readonly [expr: string | undefined, samples: Readonly<Record<string, number>>])[] = [
      [queries('Firing alerts', 'stat')[0], { '{}': 1 }],
      [queries('Firing alerts', 'table')[0], { [alert]: 60_000 }],
      [queries('Feeds behind', 'stat')[0], { '{}': 2 }],
      [queries('Feeds without a leader', 'stat')[0], { '{}': 1 }],
      [queries('Feeds', 'stat')[0], { '{}': 0 }],
      [queries('Failing stages', 'timeseries')[0], { [labels('letters', ',stage="feed"')]: 1 }],
      [queries('Feeds', 'table')[0], { [labels('invoices')]: 4, [ofOtherRelease]: 700, [labels('letters')]: 900 }],
      [queries('Feeds', 'table')[1], { [labels('letters')]: 1 }],
    ];
    const tests = {
      rule_files: [],
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(input).map(([series, value]) => ({ series, values: `${value}` })),
          promql_expr_test: expected.map(([expr = '', samples]) => ({
            expr: expr.replaceAll('$namespace', '.*'),
            eval_time: '0m',
            exp_samples: Object.entries(samples).map(([sample, value]) => ({ labels: sample, value })),
          })),
        },
      ],
    };
    const file = join(await testFolder(), 'tests.json');
    await writeFile(file, JSON.stringify(tests));
    const { status, stdout, stderr } = await runTool('promtool', ['test', 'rules', file]);
    expect({ status, output: `${stdout}${stderr}` }).toEqual({ status: 0, output: expect.stringContaining('SUCCESS') });
  });
});

describe('the dashboards of a release', () => {
  /** The files that Grafana's sidecar writes for a release. */
  const filesOf = async (context: Pick<TestContext, 'skip'>, values: object) => {
    const all = { ...REQUIRED, ...values, dashboard: { enabled: true, allFeeds: true } };
    const found = (await render(requireHelm(context), all)).filter(({ kind }) => kind === 'ConfigMap');
    const data: Readonly<Record<string, string>> = found[0]?.data;
    return Object.entries(data).map(([name, text]) => ({ name, dashboard: JSON.parse(text) }));
  };

  test('are the files of the chart, of this feed at first, with its links', async (context) => {
    const [own, all] = await filesOf(context, {
      feed: 'invoices',
      podMonitor: { enabled: true },
      ingress: { enabled: true, hosts: [{ host: 'scanfeed.example' }], tls: [{ secretName: 'a' }] },
    });
    const { uid } = own?.dashboard ?? {};
    const statusPage = { title: 'Status page', url: 'https://scanfeed.example/' };
    expect(own?.dashboard).toMatchObject({
      panels: feedDashboard.panels,
      title: 'scanfeed: invoices (documents/invoices-scanfeed)',
      links: [...feedDashboard.links, statusPage],
    });
    expect(own?.dashboard.templating.list).toMatchObject([
      DATASOURCE,
      { name: 'namespace', current: { value: 'documents' } },
      { name: 'job', current: { value: JOB } },
      { name: 'feed', current: { value: 'invoices' } },
    ]);
    expect(all?.dashboard).toEqual({
      ...JSON.parse(JSON.stringify(allFeedsDashboard).replaceAll('/d/scanfeed?', `/d/${uid}?`)),
      uid: `${uid}-all`,
      links: [...allFeedsDashboard.links, expect.objectContaining(statusPage)],
    });
  });

  test('share no file and no uid with another release', async (context) => {
    const files = [
      ...(await filesOf(context, {})),
      ...(await filesOf(context, { fullnameOverride: 'other' })),
      ...(await filesOf(context, { namespaceOverride: 'staging' })),
    ];
    expect(files).toHaveLength(6);
    expect(new Set(files.map(({ name }) => name)).size).toBe(6);
    const uids = files.map(({ dashboard }) => dashboard.uid);
    expect(new Set(uids).size).toBe(6);
    expect(uids.filter((uid) => uid.length > 40)).toEqual([]); // more than Grafana takes
    expect(new Set(files.map(({ dashboard }) => dashboard.title)).size).toBe(4); // that of all feeds is the same
  });
});
