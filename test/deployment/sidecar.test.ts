import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { packageVersion } from '../../src/core/package.js';
import {
  CHART,
  type Manifest,
  OLDEST_KUBERNETES,
  ONE_FEED,
  parseManifests,
  REQUIRED,
  render,
  renderAlerts,
  requireHelm,
  testFolder,
} from '../support/deployment/chart.js';
import { environmentOf, mountedFiles, podSpecs } from '../support/deployment/pods.js';
import { findInvalid, requireSchemas } from '../support/deployment/schemas.js';
import { runTool } from '../support/deployment/tools.js';

/** The manifests of the example of an application, which includes the sidecar. Its dependency is put beside a copy. */
async function renderExample(
  helm: string,
  args: readonly string[] = [],
  change: (example: string) => Promise<void> = async () => {},
): Promise<Manifest[]> {
  const folder = await testFolder();
  await cp(join(CHART, '..'), folder, { recursive: true });
  const example = join(folder, 'example-application');
  await change(example);
  const dependency = await runTool(helm, ['dependency', 'update', example]);
  expect(dependency).toMatchObject({ status: 0 });
  const release = ['template', 'invoices', example, '--namespace', 'documents', '--kube-version', OLDEST_KUBERNETES];
  const { status, stdout, stderr } = await runTool(helm, [...release, ...args]);
  if (status !== 0) throw new Error(stderr);
  return parseManifests(stdout);
}

describe('the sidecar', () => {
  const helm = 'helm';
  beforeEach((context) => void requireHelm(context));

  test('is an init container that keeps running and delays no other container', async () => {
    const [pod] = podSpecs(await renderExample(helm));
    const [sidecar] = pod?.initContainers ?? [];
    expect(sidecar).toMatchObject({ name: 'scanfeed', restartPolicy: 'Always' });
    expect(sidecar?.livenessProbe).toMatchObject({ httpGet: { path: '/livez', port: 'scanfeed' } });
    // The one would take the application out of service, the other would delay its start.
    expect(sidecar?.readinessProbe).toBeUndefined();
    expect(sidecar?.startupProbe).toBeUndefined();
    expect(pod?.containers.map(({ name }) => name)).toEqual(['application']);
    expect(mountedFiles(pod as never)).toEqual({
      '/etc/scanfeed/api-key': 'secret/recognition/api-key',
      '/etc/scanfeed/database': 'secret/invoices-app/uri',
    });
  });

  test('brings its monitor, alerts and dashboard, and no pods of its own', async () => {
    const manifests = await renderExample(helm);
    expect(manifests.map(({ kind }) => kind).sort()).toEqual([
      'ConfigMap',
      'Deployment',
      'PodMonitor',
      'PrometheusRule',
    ]);
    const monitor = manifests.find(({ kind }) => kind === 'PodMonitor');
    const application = manifests.find(({ kind }) => kind === 'Deployment');
    expect(application?.spec.template.metadata.labels).toMatchObject(monitor?.spec.selector.matchLabels);
    expect(monitor?.spec.podMetricsEndpoints).toMatchObject([{ port: 'scanfeed' }]);
  });

  test('takes its image from the registry of all charts, whose checks hold for it too', async () => {
    const set = [
      '--set',
      'global.imageRegistry=mirror.example',
      '--set',
      'scanfeed.image.repository=documents/scanfeed',
    ];
    const [pod] = podSpecs(await renderExample(helm, set));
    expect(pod?.initContainers?.[0]?.image).toBe(`mirror.example/documents/scanfeed:${packageVersion()}`);
    const small = renderExample(helm, ['--set', 'scanfeed.resources.limits.memory=64Mi']);
    await expect(small).rejects.toThrow('resources.limits.memory: 64Mi is too small');
  });

  test('comes after its migration, if that runs in the pod', async () => {
    const [pod] = podSpecs(await renderExample(helm, ['--set', 'scanfeed.database.migrations=initContainer']));
    expect(pod?.initContainers).toMatchObject([
      { name: 'scanfeed-migrate', args: ['migrate'] },
      { name: 'scanfeed', restartPolicy: 'Always' },
    ]);
    expect(pod?.initContainers?.[0]?.restartPolicy).toBeUndefined();
  });
});

/** The example with two sidecars, each of a feed of its own. */
async function takeTwo(example: string): Promise<void> {
  const edit = async (name: string, edited: (text: string) => string) => {
    const file = join(example, name);
    await writeFile(file, edited(await readFile(file, 'utf8')));
  };
  const dependency = { name: 'scanfeed', version: '*', repository: 'file://../scanfeed' };
  const aliases = ['invoices', 'orders'];
  await edit('Chart.yaml', (text) =>
    stringify({ ...parse(text), dependencies: aliases.map((alias) => ({ ...dependency, alias })) }),
  );
  await edit('values.yaml', (text) => {
    const { scanfeed, ...values } = parse(text);
    const own = {
      invoices: { ...scanfeed },
      orders: { ...scanfeed, feed: 'orders', nameOverride: 'orders-feed', port: 9848 },
    };
    return stringify({ ...values, ...own });
  });
  await edit('templates/deployment.yaml', (text) =>
    text.replace(/^.*\.Subcharts\.scanfeed.*$/gm, (line) =>
      aliases.map((alias) => line.replace('.Subcharts.scanfeed', `.Subcharts.${alias}`)).join('\n'),
    ),
  );
}

test('two sidecars of one pod share no name and no port, and each has its own liveness probe', async (context) => {
  const manifests = await renderExample(requireHelm(context), [], takeTwo);
  const [pod] = podSpecs(manifests);
  expect(pod?.initContainers).toMatchObject([
    {
      name: 'scanfeed',
      ports: [{ name: 'scanfeed', containerPort: 9847 }],
      livenessProbe: { httpGet: { port: 'scanfeed' } },
      volumeMounts: [{ name: 'scanfeed' }],
    },
    {
      name: 'orders-feed',
      ports: [{ name: 'orders-feed', containerPort: 9848 }],
      livenessProbe: { httpGet: { port: 'orders-feed' } },
      volumeMounts: [{ name: 'orders-feed' }],
    },
  ]);
  const [, second] = pod?.initContainers ?? [];
  expect(environmentOf(second as never)).toMatchObject({ SCANFEED_ADMIN_PORT: '9848', SCANFEED_FEED: 'orders' });
  expect(pod?.volumes.map(({ name }) => name)).toEqual(['scanfeed', 'orders-feed']);
  const monitors = manifests.filter(({ kind }) => kind === 'PodMonitor');
  expect(monitors.map(({ spec }) => spec.podMetricsEndpoints[0].port)).toEqual(['scanfeed', 'orders-feed']);
  const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  expect(names).toEqual([...new Set(names)]);
});

/** Without the labels that only Helm gives. */
function withoutHelm<T>(manifests: T): T {
  const helms = ['helm.sh/chart', 'app.kubernetes.io/managed-by'];
  return JSON.parse(JSON.stringify(manifests, (key, value) => (helms.includes(key) ? undefined : value)));
}

const HEADER = '# Made from the chart by its tests.';

function asYaml(comment: string, documents: readonly unknown[]): string {
  const texts = documents.map((document) => stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }));
  return `${HEADER} ${comment}\n${texts.join('---\n')}`;
}

describe('without Helm there is', () => {
  test('an application with the sidecar', async (context) => {
    const manifests = (await renderExample(requireHelm(context))).filter(({ kind }) => kind === 'Deployment');
    const text = asYaml('An application of two replicas with scanfeed as a sidecar.', withoutHelm(manifests));
    await expect(text).toMatchFileSnapshot(join(CHART, '../rendered/sidecar.yaml'));
  });

  test('a Deployment of its own', async (context) => {
    const manifests = await render(requireHelm(context), { ...REQUIRED, feed: 'invoices' });
    const text = asYaml('scanfeed in a pod of its own.', withoutHelm(manifests));
    await expect(text).toMatchFileSnapshot(join(CHART, '../rendered/deployment.yaml'));
  });

  test('no manifest that Kubernetes rejects', async (context) => {
    requireSchemas(context);
    for (const name of ['sidecar', 'deployment']) {
      expect(await findInvalid(await readFile(join(CHART, `../rendered/${name}.yaml`), 'utf8'))).toEqual([]);
    }
    const misspelled = 'apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {prots: []}\n';
    expect(await findInvalid(misspelled)).not.toEqual([]);
  });

  test('a rule file for Prometheus', async (context) => {
    const unmonitored = { podMonitor: { enabled: false } };
    const rules = await renderAlerts(requireHelm(context), { selector: 'feed="invoices"' }, ONE_FEED, unmonitored);
    const comment = 'Alerts of the feed "invoices", for `rule_files` of Prometheus and scrape intervals up to 1m.';
    const text = asYaml(comment, [rules]);
    await expect(text).toMatchFileSnapshot(join(CHART, '../rendered/alerts.yaml'));
  });
});
