import { readdir } from 'node:fs/promises';
import type { TestContext } from 'vitest';
import { requireTool, runTool } from './tools.js';

/** What `.ci/kubernetes-schemas` wrote: a folder for each version of Kubernetes, and one for custom resources. */
const FOLDER = process.env.KUBERNETES_SCHEMAS;

export function requireSchemas(context: Pick<TestContext, 'skip'>): void {
  requireTool(context, 'kubeconform');
  requireTool(context, 'KUBERNETES_SCHEMAS (see .ci/kubernetes-schemas)', FOLDER !== undefined);
}

/** What kubeconform finds wrong in manifests, for every version from the oldest that has sidecars to the newest. */
export async function findInvalid(manifests: string): Promise<string[]> {
  const versions = (await readdir(FOLDER as string)).filter((name) => name.startsWith('v1.'));
  if (!versions.includes('v1.29.0') || versions.length < 5) throw new Error(`too few schemas: ${versions.join(', ')}`);
  const locations = ['{{.NormalizedKubernetesVersion}}', 'custom'].flatMap((folder) => [
    '-schema-location',
    `${FOLDER}/${folder}/{{.ResourceKind}}{{.KindSuffix}}.json`,
  ]);
  const found = versions.map(async (version) => {
    const args = ['-strict', '-kubernetes-version', version.slice(1), ...locations];
    const { status, stdout, stderr } = await runTool('kubeconform', args, manifests);
    return status === 0 ? [] : [`${version}: ${stdout}${stderr}`];
  });
  return (await Promise.all(found)).flat();
}
