import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished, type TestContext } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { requireTool, runTool, type ToolRun } from './tools.js';

export const CHART = fileURLToPath(new URL('../../../helm/scanfeed/', import.meta.url));
export const OLDEST_KUBERNETES = '1.29.0';

/** The three values that have to be set. */
export const REQUIRED = {
  baseUrl: 'https://recognition.example/v1',
  apiKey: { existingSecret: 'recognition' },
  database: { existingSecret: 'invoices-app' },
};

/** Returns the name of Helm. Skips the test on a machine without it. */
export function requireHelm(context: Pick<TestContext, 'skip'>): string {
  requireTool(context, 'helm');
  return 'helm';
}

/** The chart's value files of each mode, by name: `minimal` and so on. */
export async function ciValues(): Promise<Record<string, string>> {
  const folder = join(CHART, 'ci');
  const files = (await readdir(folder)).sort();
  return Object.fromEntries(files.map((file) => [basename(file, '-values.yaml'), join(folder, file)]));
}

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  // biome-ignore lint/suspicious/noExplicitAny: manifests have the shape that the test is about to check
  readonly [field: string]: any;
}

/** `helm template` for the release "invoices" in the namespace "documents". */
export async function runTemplate(helm: string, values: unknown, args: readonly string[] = []): Promise<ToolRun> {
  const file = typeof values === 'string' ? values : await valuesFile(values);
  const release = ['template', 'invoices', CHART, '--namespace', 'documents', '--kube-version', OLDEST_KUBERNETES];
  return runTool(helm, [...release, '--values', file, ...args]);
}

/** The manifests that the chart makes of these values, or of the file of that path. */
export async function render(helm: string, values: unknown): Promise<Manifest[]> {
  const { status, stdout, stderr } = await runTemplate(helm, values);
  if (status !== 0) throw new Error(stderr);
  return parseManifests(stdout);
}

export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as Manifest | null) ?? []);
}

/** The feeds of a release: one, or several of a feeds file. */
export const ONE_FEED = { feed: 'invoices' };
export const TWO_FEEDS = {
  feeds: ['acme', 'globex'].map((name) => ({ name, apiKey: { existingSecret: 'recognition', key: name } })),
};

/** The job of the release "invoices", whose pods the chart's PodMonitor finds. */
export const JOB = 'documents/invoices-scanfeed';

/** The chart's alerts as a rule file, with these changes to the values. */
export async function renderAlerts(
  helm: string,
  prometheusRule: Readonly<Record<string, unknown>> = {},
  feeds: typeof ONE_FEED | typeof TWO_FEEDS = ONE_FEED,
  more: Readonly<Record<string, unknown>> = {},
) {
  const monitored = { podMonitor: { enabled: true }, prometheusRule: { enabled: true, ...prometheusRule } };
  const values = { ...REQUIRED, ...feeds, ...monitored, ...more };
  const rules = (await render(helm, values)).find(({ kind }) => kind === 'PrometheusRule');
  return rules?.spec as AlertFile;
}

export interface AlertFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[];
}

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A folder that is gone after the test. */
export async function testFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-deployment-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function valuesFile(values: unknown): Promise<string> {
  const file = join(await testFolder(), 'values.json');
  await writeFile(file, JSON.stringify(values));
  return file;
}
