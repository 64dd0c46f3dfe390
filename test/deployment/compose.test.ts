import { existsSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageVersion } from '../../src/core/package.js';
import { readSettings } from '../../src/settings/settings.js';
import { testFolder } from '../support/deployment/chart.js';
import { requireTool, runTool } from '../support/deployment/tools.js';
import { loadCommand, readText } from '../support/documents.js';

interface Service {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
}

const { services } = parse(readText('compose.yaml')) as { readonly services: Readonly<Record<string, Service>> };
const service = (name: string): Service => {
  const found = services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
};
/** The paths of the checkout by those in the container. */
const mountsOf = (name: string) =>
  Object.fromEntries(
    (service(name).volumes ?? []).flatMap((volume) => {
      const [source = '', target = ''] = volume.split(':');
      return source.startsWith('./') ? [[target, source]] : [];
    }),
  );

describe('compose.yaml', () => {
  test('is valid', async (context) => {
    requireTool(context, 'compose-spec');
    const { status, stderr, stdout } = await runTool('compose-spec', ['compose.yaml']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(Object.keys(parse(stdout).services).sort()).toEqual(Object.keys(services).sort());
    const wrong = join(await testFolder(), 'compose.yaml');
    await writeFile(wrong, readText('compose.yaml').replace('stop_grace_period', 'stop_grace_time'));
    expect((await runTool('compose-spec', [wrong])).status).not.toBe(0);
  });

  test('pulls the image of this version, and builds it with compose/build.yaml alone', async (context) => {
    requireTool(context, 'compose-spec');
    const servicesOf = async (...files: readonly string[]) => {
      const { status, stderr, stdout } = await runTool('compose-spec', files);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const { emulator, scanfeed } = parse(stdout).services as Readonly<Record<string, Service>>;
      return [emulator, scanfeed];
    };
    const pulled = { image: `ghcr.io/scanfeed/scanfeed:${packageVersion()}` };
    const [emulator, scanfeed] = await servicesOf('compose.yaml');
    expect([emulator, scanfeed]).toMatchObject([pulled, pulled]);
    expect([emulator, scanfeed].filter((found) => found?.build !== undefined)).toEqual([]);
    const built = { image: 'localhost/scanfeed:compose', build: { context: process.cwd() } };
    expect(await servicesOf('compose.yaml', 'compose/build.yaml')).toEqual([
      { ...emulator, ...built, build: expect.objectContaining(built.build) },
      { ...scanfeed, ...built, build: expect.objectContaining(built.build) },
    ]);
  });

  test('gives scanfeed settings that exist, for the other services', () => {
    const { environment = {} } = service('scanfeed');
    const { warnings, database, service: source, feed } = readSettings({ ...environment });
    expect(warnings).toEqual([]);
    const { POSTGRES_USER, POSTGRES_DB } = service('postgres').environment ?? {};
    expect(database.connection).toMatchObject({ host: 'postgres', user: POSTGRES_USER, database: POSTGRES_DB });
    expect(source.baseUrl).toBe('http://emulator:8899/v1');
    expect(feed.name).toBe(/feed="([^"]+)"/.exec(readText('helm/rendered/alerts.yaml'))?.[1]);
  });

  test('gives the emulator options that exist', async () => {
    const [name = '', ...words] = service('emulator').command ?? [];
    const command = await loadCommand(name);
    const known = command.options.map(({ long }) => long);
    expect(words.filter((word) => word.startsWith('--') && !known.includes(word))).toEqual([]);
  });

  test('serves nothing to other machines', () => {
    for (const { ports = [] } of Object.values(services)) {
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:(\d+):\1$/);
    }
  });

  test('mounts files that exist', () => {
    const sources = Object.keys(services).flatMap((name) => Object.values(mountsOf(name)));
    expect(sources.length).toBeGreaterThan(3);
    expect(sources.filter((source) => !existsSync(source))).toEqual([]);
  });

  test('has Prometheus scrape scanfeed and load the alerts', async (context) => {
    requireTool(context, 'promtool');
    const folder = await testFolder();
    for (const [target, source] of Object.entries(mountsOf('prometheus'))) {
      await copyFile(source, join(folder, target.replace('/etc/prometheus/', '')));
    }
    const { status, stdout, stderr } = await runTool('promtool', ['check', 'config', join(folder, 'prometheus.yaml')]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/1 rule files? found/);
    const { global: intervals, scrape_configs: scrapes } = parse(readText('compose/prometheus.yaml'));
    // The alerts' windows fit intervals up to a minute.
    expect(Number(/^(\d+)s$/.exec(intervals.scrape_interval)?.[1])).toBeLessThanOrEqual(60);
    expect(readText('helm/rendered/alerts.yaml')).toContain('scrape intervals up to 1m.');
    expect(scrapes).toMatchObject([
      { static_configs: [{ targets: ['scanfeed:9847'], labels: { namespace: expect.any(String) } }] },
    ]);
  });

  test('has Grafana show the dashboard of the chart from that Prometheus', () => {
    const mounts = mountsOf('grafana');
    expect(mounts['/etc/grafana/provisioning']).toBe('./compose/grafana');
    const { datasources } = parse(readText('compose/grafana/datasources/prometheus.yaml'));
    expect(datasources).toMatchObject([{ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true }]);
    const { providers } = parse(readText('compose/grafana/dashboards/scanfeed.yaml'));
    const folder: string = providers[0].options.path;
    expect(mounts[folder]).toBe('./helm/scanfeed/dashboards');
    const home = service('grafana').environment?.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH ?? '';
    expect(existsSync(home.replace(folder, mounts[folder] ?? ''))).toBe(true);
  });
});
