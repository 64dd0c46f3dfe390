// Called by kubernetes-schemas: turns what the packages hold into what kubeconform reads.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const [kubernetes, folder, ...customResources] = process.argv.slice(2);

/** Their references lead to an address; here the files stand side by side. */
const besideEachOther = (key, value) =>
  key === '$ref' && typeof value === 'string' ? value.replace('/api/', '') : value;

for (const name of readdirSync(kubernetes)) {
  const [, version, minor] = /^(v1\.(\d+)\.\d+)-local-strict$/.exec(name) ?? [];
  if (version === undefined || Number(minor) < 29) continue;
  mkdirSync(join(folder, version), { recursive: true });
  for (const file of readdirSync(join(kubernetes, name))) {
    const schema = JSON.parse(readFileSync(join(kubernetes, name, file), 'utf8'));
    delete schema.$id;
    writeFileSync(join(folder, version, file), JSON.stringify(schema, besideEachOther));
  }
}

/** As strict as the others: what is not listed is refused. */
function closed(schema) {
  if (schema === null || typeof schema !== 'object') return schema;
  if (Array.isArray(schema)) return schema.map(closed);
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const open = copy['x-kubernetes-preserve-unknown-fields'] || copy.type !== 'object' || copy.properties === undefined;
  return open || copy.additionalProperties !== undefined ? copy : { ...copy, additionalProperties: false };
}

function writeCustomResources(source) {
  for (const file of readdirSync(source).filter((name) => name.endsWith('.yaml'))) {
    const { kind, spec } = parse(readFileSync(join(source, file), 'utf8'));
    if (kind !== 'CustomResourceDefinition') continue;
    const [group] = spec.group.split('.');
    for (const { name: version, schema } of spec.versions) {
      const body = closed(schema.openAPIV3Schema);
      body.properties.metadata = { type: 'object' };
      writeFileSync(join(folder, 'custom', `${spec.names.singular}-${group}-${version}.json`), JSON.stringify(body));
    }
  }
}

mkdirSync(join(folder, 'custom'), { recursive: true });
customResources.forEach(writeCustomResources);
