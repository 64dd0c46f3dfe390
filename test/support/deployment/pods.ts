import type { Manifest } from './chart.js';

/** The parts of a container that the tests look at. */
export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly restartPolicy?: string;
  readonly securityContext?: {
    readonly allowPrivilegeEscalation?: boolean;
    readonly runAsNonRoot?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] };
    readonly seccompProfile?: { readonly type: string };
  };
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: unknown;
  readonly startupProbe?: unknown;
  readonly livenessProbe?: unknown;
}

interface SourceItems {
  readonly name: string;
  readonly items: readonly { readonly key: string; readonly path: string }[];
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly projected?: {
      readonly sources: readonly { readonly secret?: SourceItems; readonly configMap?: SourceItems }[];
    };
    readonly secret?: { readonly secretName: string };
  }[];
}

export function podSpecs(manifests: readonly Manifest[]): PodSpec[] {
  return manifests.flatMap(({ spec }) => (spec?.template?.spec as PodSpec | undefined) ?? []);
}

export function allContainers({ containers, initContainers = [] }: PodSpec): Container[] {
  return [...initContainers, ...containers];
}

/** The container's own variables by name. */
export function environmentOf({ env }: Container): Record<string, string> {
  return Object.fromEntries(env.map(({ name, value }) => [name, value]));
}

/** Paths of the files that a pod mounts for scanfeed, each with what it comes from: `secret/recognition/api-key`. */
export function mountedFiles({ volumes }: PodSpec): Record<string, string> {
  const sources = volumes.find(({ name }) => name === 'scanfeed')?.projected?.sources ?? [];
  return Object.fromEntries(
    sources
      .flatMap((source) => Object.entries(source) as [string, SourceItems][])
      .flatMap(([kind, { name, items }]) =>
        items.map(({ key, path }) => [`/etc/scanfeed/${path}`, `${kind}/${name}/${key}`]),
      ),
  );
}

/** Folders in which a container mounts whole secrets, each with the name of its secret. */
export function mountedSecrets({ volumes }: PodSpec, { volumeMounts }: Container): Record<string, string> {
  const secrets = new Map(volumes.map(({ name, secret }) => [name, secret?.secretName]));
  const mounts = volumeMounts.flatMap(({ name, mountPath }) => {
    const secret = secrets.get(name);
    return secret === undefined ? [] : [[mountPath, secret] as const];
  });
  return Object.fromEntries(mounts);
}
