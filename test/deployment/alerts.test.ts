import { readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERROR_KINDS } from '../../src/observability/metrics/metric-definitions.js';
import {
  type AlertFile,
  JOB,
  ONE_FEED,
  renderAlerts,
  requireHelm,
  TWO_FEEDS,
  testFolder,
} from '../support/deployment/chart.js';
import { requireTool, runTool } from '../support/deployment/tools.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const SCRAPE_SECONDS = 30;
const END = 4 * HOUR;

/** The value of a series so many seconds after the start; null: not scraped. */
type Values = (seconds: number) => number | null;
type Replica = Readonly<Record<string, Values>>;
/** The job of another release in the same namespace. */
const OTHER_JOB = 'documents/letters-scanfeed';
const SERIES = /^(\w+)(?:\{(.*)\})?$/;

const constant = (value: number) => () => value;
/** From a time on so much a second, and 0 before. */
const since = (start: number, perSecond: number) => (seconds: number) => Math.max(0, seconds - start) * perSecond;
const once = (time: number) => (seconds: number) => Number(seconds >= time);
const between = (from: number, to: number, value: number) => (seconds: number) =>
  seconds >= from && seconds < to ? value : 0;

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
/** Where the runbooks of this version are by default. */
const RUNBOOKS = `https://github.com/scanfeed/scanfeed/blob/v${version}/docs/runbooks`;

/** Everything goes wrong after ten minutes. */
const BREAK = 10 * MINUTE;

const standby = {
  scanfeed_build_info: constant(1),
  process_start_time_seconds: constant(0),
  scanfeed_lag_seconds: constant(4),
  scanfeed_last_poll_success_timestamp_seconds: (seconds) => seconds,
  scanfeed_last_delivery_timestamp_seconds: (seconds) => seconds,
  scanfeed_initial_sync_complete: constant(1),
  scanfeed_pending_results: constant(0),
  scanfeed_quarantined_entries: constant(0),
  scanfeed_leader: constant(0),
  scanfeed_cursor_resets_total: constant(0),
  'scanfeed_polls_total{outcome="failed"}': constant(0),
  'scanfeed_polls_total{outcome="end"}': constant(0),
  'scanfeed_failing{stage="feed"}': constant(0),
  'scanfeed_failing{stage="recent"}': constant(0),
  'scanfeed_failing{stage="lease"}': constant(0),
  'scanfeed_reconcile_found_total{revision="first"}': constant(0),
  'scanfeed_reconcile_found_total{revision="later"}': constant(0),
} satisfies Replica as Replica;

const leader: Replica = {
  ...standby,
  scanfeed_leader: constant(1),
  'scanfeed_polls_total{outcome="end"}': since(0, 1 / 5),
};
/** What every replica reads from the database of a feed that is no longer polled. */
const noPolls: Replica = {
  scanfeed_lag_seconds: (seconds) => 4 + since(BREAK, 1)(seconds),
  scanfeed_last_poll_success_timestamp_seconds: (seconds) => Math.min(seconds, BREAK),
};
/** The same while another replica polls it. */
const fresh: Replica = {
  scanfeed_lag_seconds: constant(4),
  scanfeed_last_poll_success_timestamp_seconds: (seconds) => seconds,
};
/** The metrics are served, but nothing moves. */
const wedged: Replica = {
  ...leader,
  ...noPolls,
  'scanfeed_polls_total{outcome="end"}': (seconds) => Math.min(seconds, BREAK) / 5,
};
/** Every poll fails: the first one, and another one a minute, unless the service asks for a longer pause. */
const failingWith = (kind: string, failures: Values = since(BREAK, 1 / 60)): Replica => ({
  ...wedged,
  'scanfeed_polls_total{outcome="failed"}': failures,
  [`scanfeed_failing{stage="feed",kind="${kind}"}`]: once(BREAK),
});
const failing = failingWith('connection');
const refused = failingWith('http_401');
const withoutDatabase: Replica = {
  ...wedged,
  scanfeed_leader: between(0, BREAK + 30, 1),
  'scanfeed_failing{stage="lease",kind="connection"}': once(BREAK),
};
/** Is there at these times alone. */
const seenWhile = (there: (seconds: number) => boolean, replica: Replica = leader): Replica =>
  Object.fromEntries(
    Object.entries(replica).map(([series, values]): [string, Values] => [
      series,
      (seconds) => (there(seconds) ? values(seconds) : null),
    ]),
  );
const gone = seenWhile((seconds) => seconds < BREAK);
/** Ends a minute after each start without having stored anything; Kubernetes starts it again five minutes later. */
const LIFE = 6 * MINUTE;
const crashing = seenWhile((seconds) => seconds < BREAK || (seconds - BREAK) % LIFE < MINUTE, {
  ...wedged,
  process_start_time_seconds: (seconds) => Math.max(0, seconds - ((seconds - BREAK) % LIFE)),
});
/** A pod that was put in the place of another, with what it counted before it was looked at. */
const replaced = (counted: Replica): readonly Replica[] => [
  gone,
  seenWhile((seconds) => seconds >= BREAK + MINUTE, { ...leader, ...counted }),
];

interface Scenario {
  readonly replicas: readonly Replica[];
  /** By minute: what fires, each as `name severity`, sorted. */
  readonly firing: Readonly<Record<number, readonly string[]>>;
}

const NOTHING = { 5: [], 20: [], 60: [], 150: [], 239: [] };
const OLD = 'LagHigh warning';
const VERY_OLD = 'LagHigh critical';

const scenarios: Readonly<Record<string, Scenario>> = {
  'an idle feed alerts nothing': { replicas: [leader], firing: NOTHING },
  'a leader and two standbys alert nothing': { replicas: [standby, leader, standby], firing: NOTHING },
  'standbys whose leader is watched elsewhere alert nothing': { replicas: [standby, standby], firing: NOTHING },
  'a replica that goes while another stays alerts nothing': { replicas: [leader, gone], firing: NOTHING },
  'a history that is read for the first time, years behind, alerts nothing': {
    replicas: [{ ...leader, scanfeed_initial_sync_complete: constant(0), scanfeed_lag_seconds: constant(9e7) }],
    firing: NOTHING,
  },
  'a standby that alone has lost the database alerts nothing': {
    replicas: [leader, { ...withoutDatabase, scanfeed_leader: constant(0) }],
    firing: NOTHING,
  },
  'failures that pass alert nothing': {
    replicas: [
      {
        ...leader,
        'scanfeed_polls_total{outcome="failed"}': once(BREAK),
        'scanfeed_failing{stage="feed",kind="http_401"}': between(BREAK, BREAK + MINUTE, 1),
        'scanfeed_failing{stage="lease",kind="connection"}': between(20 * MINUTE, 21 * MINUTE, 1),
      },
    ],
    firing: { ...NOTHING, 12: [], 15: [], 22: [], 26: [] },
  },
  'a dead daemon alerts': {
    replicas: [gone],
    firing: { 14: [], 16: ['Down critical'], 239: ['Down critical'] },
  },
  'replicas that are all dead alert once': { replicas: [gone, gone], firing: { 16: ['Down critical'] } },
  'a target that vanished alerts': { replicas: [], firing: { 4: [], 6: ['Down critical'] } },
  'a daemon that ends repeatedly alerts, although some scrapes succeed': {
    replicas: [crashing],
    firing: { 20: [], 40: ['Down critical'], 60: ['Down critical'], 150: ['Down critical'], 239: ['Down critical'] },
  },
  'a daemon that was started again, or moved to another node, alerts nothing': {
    replicas: [
      {
        ...leader,
        process_start_time_seconds: once(BREAK),
        'scanfeed_polls_total{outcome="failed"}': (seconds) => (seconds < BREAK ? 900 : 0),
      },
      ...replaced({}),
    ],
    firing: NOTHING,
  },
  'a wedged loop alerts, and its data as it grows old': {
    replicas: [wedged, { ...standby, ...noPolls }],
    firing: { 19: [], 27: [OLD, 'Stalled critical'], 77: [VERY_OLD, OLD, 'Stalled critical'] },
  },
  'a wedged loop alerts, although a pass fails': {
    replicas: [{ ...wedged, 'scanfeed_failing{stage="recent",kind="connection"}': once(BREAK) }],
    firing: { 19: [], 27: [OLD, 'Stalled critical'] },
  },
  'a loop that hangs after a failure alerts once the failure is too old to explain it': {
    replicas: [
      { ...wedged, 'scanfeed_failing{stage="feed",kind="connection"}': between(BREAK, BREAK + 2 * MINUTE, 1) },
    ],
    firing: { 31: [OLD], 34: [OLD, 'Stalled critical'] },
  },
  'a daemon that never polled alerts': {
    replicas: [{ ...leader, scanfeed_last_poll_success_timestamp_seconds: constant(0) }],
    firing: { 14: [], 16: ['Stalled critical'] },
  },
  'a service that is away alerts as errors, not as stalled': {
    replicas: [failing, { ...standby, ...noPolls }],
    firing: {
      19: [],
      30: ['ErrorRatioHigh warning', OLD],
      80: ['ErrorRatioHigh warning', VERY_OLD, OLD],
    },
  },
  'a service that asks for a pause of an hour alerts as errors during all of it': {
    replicas: [failingWith('http_503', (seconds) => Math.max(0, Math.floor((seconds - BREAK) / HOUR + 1)))],
    firing: {
      19: [],
      33: ['ErrorRatioHigh warning', OLD],
      60: ['ErrorRatioHigh warning', OLD],
      100: ['ErrorRatioHigh warning', VERY_OLD, OLD],
    },
  },
  'a key that is refused alerts by its name': {
    replicas: [refused],
    firing: { 14: [], 17: ['AuthenticationFailing critical'] },
  },
  'a key that was refused once alerts until it is accepted, however long the pause': {
    replicas: [failingWith('http_401', once(BREAK))],
    firing: {
      14: [],
      17: ['AuthenticationFailing critical'],
      60: ['AuthenticationFailing critical', 'ErrorRatioHigh warning', OLD],
    },
  },
  'a database that is away alerts by its name, not as stalled': {
    replicas: [withoutDatabase, withoutDatabase],
    firing: { 14: [], 18: ['DatabaseUnavailable critical'], 40: ['DatabaseUnavailable critical', OLD] },
  },
  'a history that is no longer read alerts': {
    replicas: [{ ...wedged, scanfeed_initial_sync_complete: constant(0), scanfeed_lag_seconds: constant(9e7) }],
    firing: { 19: [], 26: [VERY_OLD, OLD, 'Stalled critical'] },
  },
  'a freshness that stays unknown alerts': {
    replicas: [
      {
        ...withoutDatabase,
        scanfeed_initial_sync_complete: constant(0),
        scanfeed_last_poll_success_timestamp_seconds: constant(0),
        scanfeed_lag_seconds: constant(Number.POSITIVE_INFINITY),
      },
    ],
    firing: { 4: [], 26: ['DatabaseUnavailable critical', VERY_OLD, OLD] },
  },
  'a rejected cursor alerts for an hour': {
    replicas: [{ ...leader, scanfeed_cursor_resets_total: once(BREAK) }, standby],
    firing: { 9: [], 12: ['CursorReset warning'], 69: ['CursorReset warning'], 75: [] },
  },
  'a cursor that was rejected before the daemon was looked at alerts for an hour, too': {
    replicas: replaced({ scanfeed_cursor_resets_total: constant(1) }),
    firing: { 9: [], 13: ['CursorReset warning'], 69: ['CursorReset warning'], 75: [], 239: [] },
  },
  'an entry in quarantine alerts until it is settled': {
    replicas: [
      { ...leader, scanfeed_quarantined_entries: between(BREAK, HOUR, 1) },
      { ...standby, scanfeed_quarantined_entries: between(BREAK, HOUR, 1) },
    ],
    firing: { 20: [], 27: ['EntriesQuarantined warning'], 62: [] },
  },
  'results that stay pending alert, those that come do not': {
    replicas: [
      {
        ...leader,
        scanfeed_pending_results: (seconds) => between(BREAK, HOUR, 3)(seconds) + since(1.5 * HOUR, 1)(seconds),
      },
    ],
    firing: { 59: [], 205: [], 215: ['ResultsPending warning'] },
  },
  'runs that a pass found alert, first and later revisions apart': {
    replicas: [
      {
        ...leader,
        'scanfeed_reconcile_found_total{revision="first"}': once(BREAK),
        'scanfeed_reconcile_found_total{revision="later"}': once(BREAK),
      },
    ],
    firing: { 9: [], 12: ['ReconcileFoundRuns info', 'ReconcileFoundRuns info'], 135: [] },
  },
};

/** Gauges of a feed, which have its name in a process with several feeds. */
const FEED_GAUGES = [
  'scanfeed_last_delivery_timestamp_seconds',
  'scanfeed_lag_seconds',
  'scanfeed_last_poll_success_timestamp_seconds',
  'scanfeed_initial_sync_complete',
  'scanfeed_pending_results',
  'scanfeed_quarantined_entries',
  'scanfeed_leader',
  'scanfeed_failing',
];

/** A replica that follows several feeds: each has its gauges, and the events of all are counted together. */
function following(feeds: Readonly<Record<string, Replica>>, invalid: Values = constant(0)): Replica {
  const process: Record<string, Values> = { 'scanfeed_feeds{state="invalid"}': invalid };
  for (const [feed, replica] of Object.entries(feeds)) {
    for (const [series, values] of Object.entries(replica)) {
      const [, name = '', own] = SERIES.exec(series) ?? [];
      const others = process[series];
      if (FEED_GAUGES.includes(name)) {
        const labels = [`feed="${feed}"`, ...(own === undefined ? [] : [own])];
        // Only failing stages have a series.
        process[`${name}{${labels}}`] =
          name === 'scanfeed_failing' ? (seconds) => (values(seconds) === 1 ? 1 : null) : values;
      } else if (name.endsWith('_total') && others !== undefined) {
        process[series] = (seconds) => (others(seconds) ?? 0) + (values(seconds) ?? 0);
      } else process[series] = values;
    }
  }
  return process;
}

const scenariosOfMany: Readonly<Record<string, Scenario>> = {
  'idle feeds alert nothing': { replicas: [following({ acme: leader, globex: leader })], firing: NOTHING },
  'feeds that replicas share alert nothing': {
    replicas: [following({ acme: leader, globex: standby }), following({ acme: standby, globex: leader })],
    firing: NOTHING,
  },
  'a dead process alerts once': {
    replicas: [seenWhile((seconds) => seconds < BREAK, following({ acme: leader, globex: leader }))],
    firing: { 14: [], 16: ['Down critical'] },
  },
  'a feed that fails alerts as old, not as stalled': {
    replicas: [following({ acme: failing, globex: leader })],
    firing: { 19: [], 27: [OLD], 80: [OLD, VERY_OLD] },
  },
  'a feed that is stalled alerts, although another one fails': {
    replicas: [following({ acme: failing, globex: wedged })],
    firing: { 19: [], 27: [OLD, OLD, 'Stalled critical'].sort() },
  },
  'a key that is refused alerts, although other feeds work': {
    replicas: [following({ acme: refused, globex: leader })],
    firing: { 14: [], 17: ['AuthenticationFailing critical'] },
  },
  'a database that is away alerts once for all feeds': {
    replicas: [following({ acme: withoutDatabase, globex: withoutDatabase })],
    firing: { 14: [], 18: ['DatabaseUnavailable critical'], 40: ['DatabaseUnavailable critical', OLD, OLD] },
  },
  'a database that refuses one feed alerts as its data grows old': {
    replicas: [following({ acme: withoutDatabase, globex: leader })],
    firing: { 18: [], 40: [OLD] },
  },
  'a replica that alone has lost the database alerts nothing': {
    replicas: [
      following({ acme: { ...withoutDatabase, ...fresh }, globex: { ...withoutDatabase, ...fresh } }),
      following({ acme: leader, globex: leader }),
    ],
    firing: NOTHING,
  },
  'an invalid entry alerts until it is corrected': {
    replicas: [
      following({ acme: leader, globex: leader }, between(BREAK, HOUR, 1)),
      following({ acme: standby, globex: standby }, between(BREAK, HOUR, 1)),
    ],
    firing: { 19: [], 22: ['FeedsInvalid warning'], 59: ['FeedsInvalid warning'], 62: [] },
  },
};

/** Alerts, with what they are for and a minute at which they fire whatever the scrape interval. */
type Fault = readonly [alerts: readonly string[], minute: number, replica: Replica];
/** Alerts that look at a window fire although every second scrape fails. */
const WINDOWED: readonly Fault[] = [
  [['ErrorRatioHigh'], 35, failing],
  [['AuthenticationFailing'], 25, refused],
  [['DatabaseUnavailable'], 25, withoutDatabase],
  [
    ['CursorReset', 'ReconcileFoundRuns'],
    15,
    {
      ...leader,
      scanfeed_cursor_resets_total: once(BREAK),
      'scanfeed_reconcile_found_total{revision="later"}': once(BREAK),
    },
  ],
];
const FAULTS: readonly Fault[] = [
  ...WINDOWED,
  [['Down'], 20, gone],
  [['Down'], 45, crashing],
  [['Stalled', 'LagHigh'], 30, wedged],
  [
    ['EntriesQuarantined', 'ResultsPending', 'NoDeliveries'],
    45,
    {
      ...leader,
      scanfeed_quarantined_entries: once(BREAK),
      scanfeed_pending_results: once(BREAK),
      scanfeed_last_delivery_timestamp_seconds: constant(BREAK),
    },
  ],
];
const WINDOWED_OF_MANY: readonly Fault[] = [
  [['AuthenticationFailing'], 25, following({ acme: refused, globex: leader })],
  [['DatabaseUnavailable'], 25, following({ acme: withoutDatabase, globex: withoutDatabase })],
];
const FAULTS_OF_MANY: readonly Fault[] = [
  ...WINDOWED_OF_MANY,
  [['FeedsInvalid'], 25, following({ acme: leader, globex: leader }, once(BREAK))],
];

/** The replicas' series in the words of promtool. */
function inputSeries(replicas: readonly Replica[], release: object = ONE_FEED, job = JOB, interval = SCRAPE_SECONDS) {
  return replicas.flatMap((replica, index) =>
    Object.entries(replica).map(([series, values]) => {
      const feed = release === ONE_FEED ? ',feed="invoices"' : '';
      const labels = `namespace="documents",job="${job}"${feed},pod="invoices-${index}"`;
      const [, name, own] = SERIES.exec(series) ?? [];
      const samples = Array.from({ length: END / interval + 1 }, (_, scrape) => sample(values(scrape * interval)));
      return { series: `${name}{${labels}${own === undefined ? '' : `,${own}`}}`, values: samples.join(' ') };
    }),
  );
}

function sample(value: number | null): string {
  if (value === null) return 'stale';
  return value === Number.POSITIVE_INFINITY ? 'Inf' : String(value);
}

/** A check per minute; the count of each name and severity, since labels differ from alert to alert. */
function expressionTests(firing: Scenario['firing']) {
  return Object.entries(firing).map(([minute, alerts]) => ({
    expr: 'count by (alertname, severity) (ALERTS{alertstate="firing"})',
    eval_time: `${minute}m`,
    exp_samples: [...new Set(alerts)].map((alert) => {
      const [name, severity] = alert.split(' ');
      return {
        labels: `{alertname="Scanfeed${name}", severity="${severity}"}`,
        value: alerts.filter((other) => other === alert).length,
      };
    }),
  }));
}

/** Each of these alerts fires, whatever else does. */
function firesAt(names: readonly string[], minute: number) {
  return names.map((name) => ({
    expr: `count by (alertname) (ALERTS{alertstate="firing", alertname="Scanfeed${name}"}) > bool 0`,
    eval_time: `${minute}m`,
    exp_samples: [{ labels: `{alertname="Scanfeed${name}"}`, value: 1 }],
  }));
}

/** Runs promtool in a folder that holds the rules and the tests. */
async function runPromtool(args: readonly string[], rules: AlertFile, tests: readonly unknown[] = []) {
  const folder = await testFolder();
  await writeFile(join(folder, 'rules.json'), JSON.stringify(rules));
  const testFile = { rule_files: ['rules.json'], evaluation_interval: '30s', tests };
  await writeFile(join(folder, 'tests.json'), JSON.stringify(testFile));
  const paths = args.map((arg) => (arg.endsWith('.json') ? join(folder, arg) : arg));
  const { status, stdout, stderr } = await runTool('promtool', paths);
  return { status, output: `${stdout}${stderr}` };
}

const PASSED = { status: 0, output: expect.stringContaining('SUCCESS') };

describe('the alerts of the chart', () => {
  test.for([
    ...Object.entries(scenarios).map(([name, scenario]) => [name, ONE_FEED, scenario] as const),
    ...Object.entries(scenariosOfMany).map(
      ([name, scenario]) => [`of several feeds: ${name}`, TWO_FEEDS, scenario] as const,
    ),
  ])('%s', async ([, release, { replicas, firing }], context) => {
    requireTool(context, 'promtool');
    const rules = await renderAlerts(requireHelm(context), {}, release);
    const scenario = {
      interval: `${SCRAPE_SECONDS}s`,
      input_series: inputSeries(replicas, release),
      promql_expr_test: expressionTests(firing),
    };
    expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
  });

  test.for([15, 30, 60, 120])(
    'fire for their faults, and for nothing else, at a scrape interval of %i s',
    async (interval, context) => {
      requireTool(context, 'promtool');
      const alerts = { NoDeliveries: { enabled: true, threshold: HOUR / 3 }, ResultsPending: { for: '20m' } };
      const podMonitor = { enabled: true, interval: `${interval}s` };
      const everySecondScrape = (replica: Replica) => seenWhile((seconds) => (seconds / interval) % 2 === 0, replica);
      const passing = scenarios['failures that pass alert nothing']?.replicas ?? [];
      const faultless = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [2 * index, []]));
      for (const [release, healthy, faults, windowed] of [
        [ONE_FEED, passing, FAULTS, WINDOWED],
        [TWO_FEEDS, [following({ acme: leader, globex: standby })], FAULTS_OF_MANY, WINDOWED_OF_MANY],
      ] as const) {
        const rules = await renderAlerts(requireHelm(context), { alerts }, release, { podMonitor });
        const scenario = (replicas: readonly Replica[], expected: object) => ({
          interval: `${interval}s`,
          input_series: inputSeries(replicas, release, JOB, interval),
          promql_expr_test: expected,
        });
        const firing = ([names, minute, replica]: Fault) => scenario([replica], firesAt(names, minute));
        const tests = [
          scenario(healthy, expressionTests(faultless)),
          ...faults.map(firing),
          ...windowed.map(([names, minute, replica]) => firing([names, minute, everySecondScrape(replica)])),
        ];
        expect(await runPromtool(['test', 'rules', 'tests.json'], rules, tests)).toEqual(PASSED);
        const tested = [...FAULTS, ...FAULTS_OF_MANY].flatMap(([names]) => names);
        const all = rules.groups.flatMap((group) => group.rules).map(({ alert }) => alert.replace('Scanfeed', ''));
        expect(all.filter((alert) => !tested.includes(alert))).toEqual([]);
      }
    },
  );

  test('say what happened, how bad it is, to whom, and what to read', async (context) => {
    requireTool(context, 'promtool');
    const rules = await renderAlerts(requireHelm(context), { alertLabels: { team: 'documents' } });
    const scenario = {
      interval: `${SCRAPE_SECONDS}s`,
      input_series: inputSeries([wedged]),
      alert_rule_test: [
        {
          eval_time: '30m',
          alertname: 'ScanfeedLagHigh',
          exp_alerts: [
            {
              exp_labels: {
                severity: 'warning',
                team: 'documents',
                namespace: 'documents',
                job: JOB,
                feed: 'invoices',
              },
              exp_annotations: {
                summary: 'The stored data is old',
                description:
                  'Entries that the feed invoices delivered in the last 20m 4s may be missing from the database. Reports show an older state.',
                runbook_url: `${RUNBOOKS}/ScanfeedLagHigh.md`,
              },
            },
          ],
        },
      ],
    };
    expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
  });

  test('name no feed where the events of several are counted together', async (context) => {
    requireTool(context, 'promtool');
    const rules = await renderAlerts(requireHelm(context), {}, TWO_FEEDS);
    const said = (
      name: string,
      severity: string,
      labels: Readonly<Record<string, string>>,
      summary: string,
      description: string,
    ) => ({
      eval_time: '30m',
      alertname: `Scanfeed${name}`,
      exp_alerts: [
        {
          exp_labels: { severity, namespace: 'documents', job: JOB, ...labels },
          exp_annotations: { summary, description, runbook_url: `${RUNBOOKS}/Scanfeed${name}.md` },
        },
      ],
    });
    const scenario = {
      interval: `${SCRAPE_SECONDS}s`,
      input_series: inputSeries([following({ acme: refused, globex: refused }, constant(2))], TWO_FEEDS),
      alert_rule_test: [
        said(
          'ErrorRatioHigh',
          'warning',
          {},
          'Many polls fail',
          '100% of the polls of all feeds failed in the last 10m.',
        ),
        said(
          'FeedsInvalid',
          'warning',
          {},
          'Entries of the feeds file are invalid',
          '2 entries of the feeds file are invalid: their feeds keep running with their last valid entries, or do not start.',
        ),
      ],
    };
    expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
  });

  test('name no time where there is none yet', async (context) => {
    requireTool(context, 'promtool');
    const rules = await renderAlerts(requireHelm(context));
    const unknown = {
      ...leader,
      scanfeed_lag_seconds: constant(Number.POSITIVE_INFINITY),
      // promtool's clock starts at 0, as the time of the last poll does.
      scanfeed_last_poll_success_timestamp_seconds: constant(-1.8e9),
    };
    const said = (name: string, severities: readonly string[], summary: string, description: string) => ({
      eval_time: '30m',
      alertname: `Scanfeed${name}`,
      exp_alerts: severities.map((severity) => ({
        exp_labels: { severity, namespace: 'documents', job: JOB, feed: 'invoices' },
        exp_annotations: { summary, description, runbook_url: `${RUNBOOKS}/Scanfeed${name}.md` },
      })),
    });
    const scenario = {
      interval: `${SCRAPE_SECONDS}s`,
      input_series: inputSeries([unknown]),
      alert_rule_test: [
        said(
          'Stalled',
          ['critical'],
          'The feed is not being polled, and no failure explains it',
          'No poll of the feed invoices has succeeded yet, and no failure is being retried: the sync loop hangs, or another process leads the feed and does nothing.',
        ),
        said(
          'LagHigh',
          ['warning', 'critical'],
          'The stored data is old',
          'Entries that the feed invoices delivered so far may be missing from the database. Reports show an older state.',
        ),
      ],
    };
    expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
  });

  test('concern their own feed alone', async (context) => {
    requireTool(context, 'promtool');
    const rules = await renderAlerts(requireHelm(context));
    const others = inputSeries([failing, { ...wedged, scanfeed_quarantined_entries: constant(5) }]).map(
      ({ series, values }, index) => ({
        series: index % 2 === 0 ? series.replace('invoices', 'letters') : series.replace('documents', 'staging'),
        values,
      }),
    );
    const scenario = {
      interval: `${SCRAPE_SECONDS}s`,
      input_series: [...inputSeries([leader]), ...others],
      promql_expr_test: expressionTests(NOTHING),
    };
    expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
  });

  test.for([
    ['one feed', ONE_FEED, gone, leader],
    [
      'several feeds',
      TWO_FEEDS,
      seenWhile((seconds) => seconds < BREAK, following({ acme: leader, globex: leader })),
      following({ initech: leader, umbrella: leader }),
    ],
  ] as const)(
    'see a release of %s that is gone beside another in the namespace',
    async ([, feeds, own, other], context) => {
      requireTool(context, 'promtool');
      const rules = await renderAlerts(requireHelm(context), {}, feeds);
      const scenario = {
        interval: `${SCRAPE_SECONDS}s`,
        input_series: [...inputSeries([own], feeds), ...inputSeries([other], feeds, OTHER_JOB)],
        promql_expr_test: expressionTests({ 14: [], 16: ['Down critical'], 239: ['Down critical'] }),
      };
      expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
    },
  );

  test('of several feeds concern their own release alone', async (context) => {
    requireTool(context, 'promtool');
    const rules = await renderAlerts(requireHelm(context), {}, TWO_FEEDS);
    const broken = following({ initech: failing, umbrella: withoutDatabase }, constant(1));
    const scenario = {
      interval: `${SCRAPE_SECONDS}s`,
      input_series: [
        ...inputSeries([following({ acme: leader, globex: leader })], TWO_FEEDS),
        ...inputSeries([broken], TWO_FEEDS, OTHER_JOB),
      ],
      promql_expr_test: expressionTests(NOTHING),
    };
    expect(await runPromtool(['test', 'rules', 'tests.json'], rules, [scenario])).toEqual(PASSED);
  });

  test('pass the linter of Prometheus', async (context) => {
    requireTool(context, 'promtool');
    for (const release of [ONE_FEED, TWO_FEEDS]) {
      const rules = await renderAlerts(requireHelm(context), {}, release);
      expect(await runPromtool(['check', 'rules', '--lint=all', '--lint-fatal', 'rules.json'], rules)).toEqual(PASSED);
    }
  });

  test('can be switched off one by one, and their thresholds set', async (context) => {
    const alerts = {
      Down: { enabled: false },
      LagHigh: { warning: 60, for: '1m' },
      ErrorRatioHigh: { severity: 'info' },
    };
    const rules = (await renderAlerts(requireHelm(context), { alerts })).groups.flatMap((group) => group.rules);
    const named = (name: string) => rules.filter(({ alert }) => alert === `Scanfeed${name}`);
    expect(named('Down')).toEqual([]);
    expect(named('LagHigh')).toMatchObject([
      { labels: { severity: 'warning' }, expr: expect.stringContaining('> 60\n'), for: '1m' },
      { labels: { severity: 'critical' }, expr: expect.stringContaining('> 3600\n'), for: '1m' },
    ]);
    expect(named('ErrorRatioHigh')).toMatchObject([{ labels: { severity: 'info' } }]);
  });

  test('report a feed that lists nothing new only when that is enabled', async (context) => {
    requireTool(context, 'promtool');
    const quiet = {
      ...leader,
      scanfeed_last_delivery_timestamp_seconds: (seconds: number) => Math.min(seconds, BREAK),
    };
    const unknown = { ...leader, scanfeed_last_delivery_timestamp_seconds: constant(0) };
    const alerts = { NoDeliveries: { enabled: true, threshold: 3600 } };
    const scenario = (
      replicas: readonly Replica[],
      release: Readonly<Record<string, unknown>>,
      firing: Scenario['firing'],
    ) => ({
      interval: `${SCRAPE_SECONDS}s`,
      input_series: inputSeries(replicas, release),
      promql_expr_test: expressionTests(firing),
    });
    for (const [given, replicas, last] of [
      [{ alerts }, [quiet, { ...quiet, scanfeed_leader: constant(0) }], ['NoDeliveries warning']],
      [{ alerts }, [unknown], []],
      [{}, [quiet], []],
    ] as const) {
      const rules = await renderAlerts(requireHelm(context), given);
      const tests = [scenario(replicas, ONE_FEED, { 69: [], 90: last })];
      expect(await runPromtool(['test', 'rules', 'tests.json'], rules, tests)).toEqual(PASSED);
    }
  });

  test('are explained for each kind of failure that they can name', async () => {
    const folder = new URL('../../docs/runbooks/', import.meta.url);
    const pages = await Promise.all((await readdir(folder)).map((name) => readFile(new URL(name, folder), 'utf8')));
    const documented = (kind: string) => pages.some((page) => page.includes(`\`${kind}\``));
    // A page whose values are refused is cut down to the entry, which goes to quarantine.
    const kinds = new Set(ERROR_KINDS);
    expect([...kinds].filter((kind) => kind !== 'data' && !documented(kind))).toEqual([]);
  });

  test('have a runbook each, and each runbook an alert', async (context) => {
    const all = { alerts: { NoDeliveries: { enabled: true } } };
    const rules = (await renderAlerts(requireHelm(context), all, TWO_FEEDS)).groups.flatMap((group) => group.rules);
    const runbooks = (await readdir(new URL('../../docs/runbooks/', import.meta.url))).filter(
      (name) => name !== 'README.md',
    );
    expect(new Set(rules.map(({ annotations }) => annotations.runbook_url))).toEqual(
      new Set(runbooks.map((name) => `${RUNBOOKS}/${name}`)),
    );
    expect(new Set(rules.map(({ alert }) => `${alert}.md`))).toEqual(new Set(runbooks));
    const own = await renderAlerts(requireHelm(context), { runbookUrl: 'https://scanfeed.example/runbooks/' });
    expect(own.groups[0]?.rules[0]?.annotations.runbook_url).toBe('https://scanfeed.example/runbooks/ScanfeedDown.md');
  });
});
