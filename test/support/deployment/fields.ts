import { type Manifest, parseManifests } from './chart.js';

/** The values of one kind of manifest by their paths, such as `Deployment.spec.replicas`. */
export type Fields = ReadonlyMap<string, string>;

/** The values of manifests, by kind. Manifests of one kind are numbered from the second. */
export function fieldsByKind(text: string): ReadonlyMap<string, Fields> {
  const found = new Map<string, Manifest[]>();
  for (const manifest of parseManifests(text))
    found.set(manifest.kind, [...(found.get(manifest.kind) ?? []), manifest]);
  const fields = [...found].map(([kind, manifests]): [string, Fields] => [
    kind,
    new Map(manifests.flatMap((manifest, index) => fieldsBelow(index === 0 ? kind : `${kind}${index + 1}`, manifest))),
  ]);
  return new Map(fields);
}

/** What differs from the known values: a line for each new or changed one, and one with a dash for each that is missing. */
export function describeChanges(fields: Fields, known: Fields = new Map()): string[] {
  const changed = [...fields].filter(([path, value]) => known.get(path) !== value);
  const missing = [...known.keys()].filter((path) => !fields.has(path));
  return [...changed.map(([path, value]) => `${path}: ${value}`), ...missing.map((path) => `- ${path}`)];
}

function fieldsBelow(path: string, value: unknown): [path: string, value: string][] {
  if (path.endsWith('.json')) return [[path, '…']]; // The dashboards have files of their own.
  const inner = Array.isArray(value) ? namedItems(path, value) : Object.entries(Object(value));
  const isLeaf = typeof value !== 'object' || inner.length === 0;
  return isLeaf
    ? [[path, JSON.stringify(value)]]
    : inner.flatMap(([name, item]) => fieldsBelow(`${path}.${name}`, item));
}

/** Items by name if each has one, otherwise by position. Init containers run in their order, so it is their position. */
function namedItems(path: string, items: readonly unknown[]): [name: string, item: unknown][] {
  const names = items.map(nameOf);
  const hasNames = new Set(names).size === items.length && !names.includes(undefined);
  return items.map((item, position) => [
    String(hasNames && !path.endsWith('.initContainers') ? names[position] : position),
    item,
  ]);
}

function nameOf(item: unknown): string | undefined {
  const { alert, labels, mountPath, name } = Object(item);
  return alert === undefined ? (mountPath ?? name) : `${alert}(${labels.severity})`;
}
