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
    new Map(
      manifests.flatMap((manifest, index) => [...fieldsBelow(index === 0 ? kind : `${kind}${index + 1}`, manifest)]),
    ),
  ]);
  return new Map(fields);
}

/** What differs from the known values: a line for each new or changed one, and one with a dash for all below a path. */
export function describeChanges(fields: Fields, known: Fields = new Map()): string[] {
  const changed = [...fields].filter(([path, value]) => known.get(path) !== value);
  const kept = new Set([...fields.keys()].flatMap(prefixes));
  const missing = [...known.keys()].flatMap((path) => prefixes(path).find((prefix) => !kept.has(prefix)) ?? []);
  return [...changed.map(([path, value]) => `${path}: ${value}`), ...[...new Set(missing)].map((path) => `- ${path}`)];
}

/** Returns the paths of the objects around a field, and its own: `a`, `a.b`, `a.b.c`. */
function prefixes(path: string): string[] {
  const names = path.split('.');
  return names.map((_, index) => names.slice(0, index + 1).join('.'));
}

/** The values below a path, without the names that are in the paths. */
export function fieldsBelow(path: string, value: unknown): Fields {
  if (path.endsWith('.json')) return new Map([[path, '…']]); // The dashboards have files of their own.
  const inner = Array.isArray(value) ? namedItems(path, value) : Object.entries(Object(value));
  const isLeaf = typeof value !== 'object' || inner.length === 0;
  return new Map(
    isLeaf
      ? [[path, JSON.stringify(value)]]
      : inner.flatMap(([name, item]) => [...fieldsBelow(`${path}.${name}`, item)]),
  );
}

/** Items by name if each has one, otherwise by position. Init containers run in their order, so it is their position. */
function namedItems(path: string, items: readonly unknown[]): [name: string, item: unknown][] {
  const names = items.map(nameOf);
  const hasNames = new Set(names).size === items.length && !names.includes(undefined);
  const isNamed = hasNames && !path.endsWith('.initContainers');
  return items.map((item, position) => [
    String(isNamed ? names[position] : position),
    isNamed ? withoutName(Object(item)) : item,
  ]);
}

function nameOf(item: unknown): string | undefined {
  const { alert, labels, mountPath, name } = Object(item);
  return alert === undefined ? (mountPath ?? name) : `${alert}(${labels.severity})`;
}

function withoutName(item: Readonly<Record<string, unknown>>): object {
  const key = ['alert', 'mountPath', 'name'].find((each) => item[each] !== undefined);
  return Object.fromEntries(Object.entries(item).filter(([each]) => each !== key));
}
