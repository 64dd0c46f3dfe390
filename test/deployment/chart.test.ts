import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { systemClock } from '../../src/core/clock.js';
import { readFeedsFile } from '../../src/settings/feeds-file.js';
import { readSettings } from '../../src/settings/settings.js';
import { testCertificate } from '../support/certificate.js';
import {
  CHART,
  ciValues,
  type Manifest,
  OLDEST_KUBERNETES,
  parseManifests,
  REQUIRED,
  render,
  requireHelm,
  runTemplate,
  testFolder,
} from '../support/deployment/chart.js';
import { describeChanges, fieldsBelow, fieldsByKind } from '../support/deployment/fields.js';
import { allContainers, environmentOf, mountedFiles, mountedSecrets, podSpecs } from '../support/deployment/pods.js';
import { findInvalid, requireSchemas } from '../support/deployment/schemas.js';
import { requireTool, runTool } from '../support/deployment/tools.js';
import { readText } from '../support/documents.js';

async function authorityFile(): Promise<string> {
  const path = join(await testFolder(), 'ca.crt');
  await writeFile(path, testCertificate('db.example').cert);
  return path;
}

const CI_VALUES = Object.entries(await ciValues());

describe('with Helm', () => {
  const helm = 'helm';
  beforeEach((context) => void requireHelm(context));

  test.each(CI_VALUES)('%s passes the strict linter', async (_name, file) => {
    const args = ['lint', '--strict', '--kube-version', OLDEST_KUBERNETES, CHART, '--values', file];
    const { status, stdout, stderr } = await runTool(helm, args);
    expect({ status, output: `${stdout}${stderr}` }).toEqual({
      status: 0,
      output: expect.stringContaining('0 chart(s) failed'),
    });
  });

  test('makes the manifests that were looked at', async () => {
    const { minimal, everything, ...others } = Object.fromEntries(CI_VALUES);
    /** The fields of each kind, in the last set of values that has it, or in helm/rendered/. */
    const known = new Map(fieldsByKind(readText('helm/rendered/deployment.yaml')));
    known.set('PrometheusRule', fieldsBelow('PrometheusRule.spec', parse(readText('helm/rendered/alerts.yaml'))));
    const sections: string[] = [];
    for (const [name, file] of Object.entries({ minimal, ...others, everything })) {
      const { stdout, stderr } = await runTemplate(helm, file);
      expect(stderr).toBe('');
      const kinds = fieldsByKind(stdout);
      const lines = [...kinds].flatMap(([kind, fields]) => describeChanges(fields, known.get(kind)));
      sections.push([`# ${name}: ${[...kinds.keys()].join(', ')}`, ...lines, ''].join('\n'));
      for (const [kind, fields] of kinds) known.set(kind, fields);
    }
    await expect(sections.join('\n')).toMatchFileSnapshot('rendered.txt');
  });

  test.each([
    ['a value that does not exist', { replicas: 2 }, "additional properties 'replicas' not allowed"],
    ['one that does not exist further in', { image: { name: 'x' } }, "additional properties 'name' not allowed"],
    ['a setting that does not exist', { settings: { SCANFEED_POLL_INTERVALL: '5s' } }, 'SCANFEED_POLL_INTERVALL'],
    ['a setting with a value of its own', { settings: { SCANFEED_FEED: 'invoices' } }, 'SCANFEED_FEED'],
    ['a key instead of its secret', { apiKey: 'canary' }, '/apiKey'],
    ['an address without a scheme', { baseUrl: 'recognition.example/v1' }, '/baseUrl'],
    ['an address with a password', { baseUrl: 'https://user:password@recognition.example/v1' }, '/baseUrl'],
    ['a password in the proxy', { proxy: { url: 'http://user:password@proxy.example' } }, '/proxy/url'],
    ['a name that none of several feeds can have', { feeds: [{ name: 'in voices' }] }, '/feeds/0/name'],
    ['a key of a feed instead of its secret', { feeds: [{ name: 'acme', apiKey: 'canary' }] }, '/feeds/0/apiKey'],
    ['a feed with the path of a key', { feeds: [{ name: 'acme', apiKeyFile: '/key' }] }, "'apiKeyFile' not allowed"],
    ['two feeds of a name', { feeds: [{ name: 'acme' }, { name: 'acme' }] }, 'feeds: two have the name acme'],
    [
      'a feed without a key',
      { apiKey: { existingSecret: '' }, feeds: [{ name: 'acme' }] },
      'feeds: acme has no apiKey',
    ],
    ['a feed without an address', { baseUrl: '', feeds: [{ name: 'acme' }] }, 'feeds: acme has no baseUrl'],
    [
      'plain HTTP of a feed',
      { feeds: [{ name: 'acme', baseUrl: 'http://recognition.example/v1' }] },
      'feeds: baseUrl of acme: http: is not encrypted',
    ],
    ['a name no feed can have', { feed: 'in voices' }, '/feed'],
    ['another mode', { mode: 'daemonset' }, '/mode'],
    ['replicas that are no number', { replicaCount: '2' }, '/replicaCount'],
    ['no connection at all', { database: { ...REQUIRED.database, connections: 0 } }, '/database/connections'],
    ['a digest that is none', { image: { digest: 'latest' } }, '/image/digest'],
    ['an egress policy without destinations', { networkPolicy: { enabled: true } }, '/networkPolicy/egress'],
    [
      'two monitors',
      { podMonitor: { enabled: true }, serviceMonitor: { enabled: true } },
      'counted twice; enable only one',
    ],
    ['a name that Kubernetes refuses', { nameOverride: 'My.Feed' }, '/nameOverride'],
    ['a label that finds the pods', { commonLabels: { 'app.kubernetes.io/instance': 'x' } }, "the chart's own"],
    [
      'a variable that it sets itself',
      { extraEnv: [{ name: 'SCANFEED_FEED', value: 'x' }] },
      'SCANFEED_FEED is set by the value feed',
    ],
    [
      'a second severity of the alerts',
      { podMonitor: { enabled: true }, prometheusRule: { enabled: true, alertLabels: { severity: 'page' } } },
      'prometheusRule.alertLabels: the label severity is set by',
    ],
    [
      'alerts of series that it does not know',
      { prometheusRule: { enabled: true } },
      'prometheusRule.selector: set the labels',
    ],
    ['an alert that does not exist', { prometheusRule: { alerts: { Lag: {} } } }, "'Lag' not allowed"],
  ])('rejects %s', async (_what, values, complaint) => {
    const { status, stderr } = await runTemplate(helm, { ...REQUIRED, ...values });
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(complaint) });
  });

  test('asks for everything that is missing at once', async () => {
    const { status, stderr } = await runTemplate(helm, {});
    const all = /baseUrl is required.*\n.*apiKey\.existingSecret is required.*\n.*database\.existingSecret is required/;
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(all) });
  });

  test.each([
    ['a network policy', { networkPolicy: policy() }, 'hold for its whole pod'],
    ['a ServiceMonitor', { serviceMonitor: { enabled: true } }, 'use podMonitor.enabled'],
  ])('a sidecar has no %s', async (_what, values, complaint) => {
    const { status, stderr } = await runTemplate(helm, { ...REQUIRED, mode: 'sidecar', ...values });
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(complaint) });
  });
});

/** The feeds file in the ConfigMap that a pod mounts, `configMap/NAME/feeds.yaml`; empty without one. */
function feedsFileIn(manifests: readonly Manifest[], source = ''): string {
  const [, name] = source.split('/');
  return (
    manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)?.data['feeds.yaml'] ?? ''
  );
}

function policy() {
  const anywhere = { to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] };
  return { enabled: true, egress: { service: anywhere, database: anywhere } };
}

describe('the manifests', () => {
  test.for(CI_VALUES)('of %s are valid for every Kubernetes from 1.29 to the newest', async ([, file], context) => {
    requireSchemas(context);
    const { stdout } = await runTemplate(requireHelm(context), file);
    expect(await findInvalid(stdout)).toEqual([]);
  });

  test.for(CI_VALUES)('of %s keep to the restricted pod security standard', async ([, file], context) => {
    const manifests = await render(requireHelm(context), file);
    expect(manifests).not.toEqual([]);
    for (const pod of podSpecs(manifests)) {
      for (const container of allContainers(pod).filter(({ name }) => name.startsWith('scanfeed'))) {
        expect(container.securityContext).toEqual({
          runAsNonRoot: true,
          runAsUser: 65532,
          runAsGroup: 65532,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          seccompProfile: { type: 'RuntimeDefault' },
        });
      }
    }
  });

  test.for(CI_VALUES)('of %s set what the daemon understands, with files that are there', async ([, file], context) => {
    const manifests = await render(requireHelm(context), file);
    for (const pod of podSpecs(manifests)) {
      const files = mountedFiles(pod);
      const contents: Readonly<Record<string, string>> = {
        '/etc/scanfeed/api-key': 'key',
        '/etc/scanfeed/database': files['/etc/scanfeed/database']?.endsWith('/password')
          ? 'password'
          : 'postgres://scanfeed:password@db.example/invoices',
        '/etc/scanfeed/migration-database': 'postgresql://owner:password@db.example/invoices',
        '/etc/scanfeed/ca.crt': testCertificate('proxy.example').cert,
        '/etc/scanfeed/proxy': 'http://user:password@proxy.example:3128',
        '/etc/scanfeed/feeds.yaml': feedsFileIn(manifests, files['/etc/scanfeed/feeds.yaml']),
      };
      const readFile = (path: string) => {
        expect(Object.keys(files)).toContain(path);
        return contents[path] ?? '';
      };
      for (const container of allContainers(pod).filter(({ name }) => name.startsWith('scanfeed'))) {
        const env = environmentOf(container);
        if (env.PGSSLROOTCERT?.startsWith('/')) {
          expect(Object.keys(files)).toContain(env.PGSSLROOTCERT);
          env.PGSSLROOTCERT = await authorityFile(); // which is read from the disk only
        }
        const secrets = mountedSecrets(pod, container);
        const readKey = (path: string) => (Object.hasOwn(secrets, dirname(path)) ? 'key' : readFile(path));
        const { feeds, invalid } =
          env.SCANFEED_FEEDS_FILE === undefined
            ? { feeds: [readSettings(env, { readFile })], invalid: [] }
            : await readFeedsFile(env.SCANFEED_FEEDS_FILE, env, { readFile: readKey, clock: systemClock });
        expect(invalid).toEqual([]);
        expect(feeds.length).toBeGreaterThan(0);
        for (const { service, warnings } of feeds) {
          expect(warnings).toEqual([]);
          expect(await service.readApiKey()).toBe('key');
        }
      }
    }
    expect(manifests).not.toEqual([]);
  });

  test('have only the dashboard of all feeds when there is a list of feeds', async (context) => {
    const values = { ...REQUIRED, feeds: [{ name: 'acme' }], dashboard: { enabled: true } };
    const manifests = await render(requireHelm(context), values);
    const files = manifests.filter(({ kind }) => kind === 'ConfigMap').flatMap(({ data }) => Object.keys(data));
    expect(files.sort()).toEqual(['documents.invoices-scanfeed-all-feeds.json', 'feeds.yaml']);
  });

  test('name each label and annotation once, the narrower value', async (context) => {
    const values = {
      ...REQUIRED,
      commonLabels: { team: 'all' },
      podLabels: { team: 'pods' },
      podAnnotations: { 'kubectl.kubernetes.io/default-container': 'other' },
      podMonitor: { enabled: true, labels: { team: 'monitor' } },
    };
    // Which the parser refuses otherwise.
    const manifests = await render(requireHelm(context), values);
    const named = (wanted: string) => manifests.find(({ kind }) => kind === wanted);
    expect(named('ServiceAccount')?.metadata.labels).toMatchObject({ team: 'all' });
    expect(named('PodMonitor')?.metadata.labels).toMatchObject({ team: 'monitor' });
    expect(named('Deployment')?.spec.template.metadata).toMatchObject({
      labels: { team: 'pods' },
      annotations: { 'kubectl.kubernetes.io/default-container': 'other' },
    });
  });

  test('check the certificate of a database whose authorities are given, unless PGSSLMODE is set', async (context) => {
    const database = { ...REQUIRED.database, ca: { secret: 'invoices-ca' } };
    const sslMode = async (settings: object) => {
      const [pod] = podSpecs(await render(requireHelm(context), { ...REQUIRED, database, settings }));
      return environmentOf(pod?.containers[0] as never).PGSSLMODE;
    };
    expect(await sslMode({})).toBe('verify-full');
    expect(await sslMode({ PGSSLMODE: 'verify-ca' })).toBe('verify-ca');
  });

  test.for([
    ['connections of the replica that an update adds', {}, '8 connections, and 16 during an update.'],
    ['none to add where all are replaced at once', { updateStrategy: { type: 'Recreate' } }, '8 connections.\n'],
    ['a share of the replicas as more', { replicaCount: 4, updateStrategy: surge('25%') }, '32 connections, and more'],
    ['as many as are added', { replicaCount: 2, updateStrategy: surge(3) }, '16 connections, and 40 during an update.'],
    ['a list of feeds', { feeds: [{ name: 'acme' }, { name: 'globex' }] }, 'keeps 2 feeds in PostgreSQL.\n'],
    ['no replica', { replicaCount: 0 }, 'Nothing is running: replicaCount is 0.\n'],
    ['a sidecar', { mode: 'sidecar' }, '8 connections from each pod.'],
  ] as const)('are followed by notes with %s', async ([, values, expected], context) => {
    requireTool(context, 'helm');
    const given = Object.entries({ ...REQUIRED, ...values });
    const set = given.flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);
    const { stdout } = await runTool('helm', ['install', 'invoices', CHART, '--dry-run=client', ...set]);
    expect(stdout.replace(/^.*^NOTES:/ms, '')).toContain(expected);
  });

  function surge(maxSurge: number | string) {
    return { type: 'RollingUpdate', rollingUpdate: { maxSurge } };
  }

  test('replace all replicas at once where that is asked for', async (context) => {
    const manifests = await render(requireHelm(context), { ...REQUIRED, updateStrategy: { type: 'Recreate' } });
    expect(manifests.find(({ kind }) => kind === 'Deployment')?.spec.strategy).toEqual({ type: 'Recreate' });
  });

  test('have names that a Service may have, whatever the release is called', async (context) => {
    const values = join(CHART, 'ci', 'service-monitor-values.yaml');
    const args = ['template', 'team.invoices', CHART, '--values', values, '--kube-version', OLDEST_KUBERNETES];
    const manifests = parseManifests((await runTool(requireHelm(context), args)).stdout);
    expect(new Set(manifests.map(({ metadata }) => metadata.name))).toEqual(new Set(['team-invoices-scanfeed']));
  });
});

describe('the chart', () => {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'));
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));

  test('has the version of the program', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(chart).toMatchObject({ version, appVersion: version });
  });

  test('describes its values in its README as they are', async (context) => {
    requireTool(context, 'helm-docs');
    const { stdout } = await runTool('helm-docs', [
      '--dry-run',
      '--log-level=error',
      '--sort-values-order=file',
      `--chart-search-root=${CHART}`,
    ]);
    await expect(stdout).toMatchFileSnapshot(join(CHART, 'README.md'));
    expect(stdout.split('\n').filter((line) => line.endsWith('|  |'))).toEqual([]);
  });

  test('has a default for everything that its schema takes', () => {
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
    // A setting has the program's default; the rest is Helm's or Kubernetes'.
    const without = ['enabled', 'settings.*', 'resources.claims', 'lifecycle.*'];
    const missing = pathsOf(schema).filter((path) => {
      const value = path.split('.').reduce((part, name) => part?.[name], values);
      return value === undefined && !without.includes(path) && !without.includes(path.replace(/\.[^.]+$/, '.*'));
    });
    expect(missing).toEqual([]);
  });

  interface Schema {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly $ref?: string;
  }

  /** Every property of a schema, `image.tag` and so on. */
  function pathsOf(part: Schema, prefix = ''): string[] {
    const { properties = {} }: Schema = part.$ref ? schema.definitions[part.$ref.replace('#/definitions/', '')] : part;
    return Object.entries(properties).flatMap(([name, inner]) => [
      `${prefix}${name}`,
      ...pathsOf(inner, `${prefix}${name}.`),
    ]);
  }
});
