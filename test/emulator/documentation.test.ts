import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { documentTypes, faultKinds } from '../../src/emulator/index.js';
import { faultSchema } from '../../src/emulator/model/faults.js';
import { runSpecSchema } from '../../src/emulator/model/run-specs.js';
import { switchesSchema } from '../../src/emulator/model/switches.js';
import { setUp } from './client.js';

/** Returns the fields of an interface in a file of `src/emulator/model/`, with their comments. */
function fieldsOf(file: string, name: string): Record<string, string> {
  const source = readFileSync(new URL(`../../src/emulator/model/${file}`, import.meta.url), 'utf8');
  const [, body = ''] = new RegExp(`interface ${name} [^{]*\\{\n([^]*?)\n\\}`).exec(source) ?? [];
  const fields = [...body.matchAll(/ {2}\/\*\* (.+) \*\/\n {2}readonly (\w+)/g)];
  return Object.fromEntries(fields.map(([, comment = '', field = '']) => [field, comment]));
}

test('the published types have the fields of the schemas, and describe switches in the same words', () => {
  const described = Object.entries(switchesSchema.shape).map(([name, { description = '' }]) => [name, description]);
  const sentences = described.map(([name, [first = '', ...rest] = '']) => [
    name,
    `${first.toUpperCase()}${rest.join('')}.`,
  ]);
  expect(fieldsOf('switch-types.ts', 'Switches')).toEqual(Object.fromEntries(sentences));
  expect(Object.keys(fieldsOf('fault-types.ts', 'FaultInput'))).toEqual(Object.keys(faultSchema.shape));
  expect(Object.keys(fieldsOf('run-spec-types.ts', 'RunSpec'))).toEqual(Object.keys(runSpecSchema.shape));
});

const text = readFileSync(new URL('../../docs/emulator.md', import.meta.url), 'utf8');

test('docs/emulator.md names every switch, every kind of fault and every document type', () => {
  const names = [
    ...Object.keys(switchesSchema.shape),
    ...Object.keys(faultKinds),
    ...documentTypes.map(({ slug }) => slug),
  ];
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

test('docs/emulator.md shows control requests that succeed', async () => {
  const { emulator, get } = await setUp({ history: 5 });
  emulator.appendRuns([{ scanId: 'invoice-1' }]);
  const calls = [...text.replaceAll(' \\\n   ', '').matchAll(/^\$ curl (?:-X (\w+) )?"?\$CONTROL(\/[^\s"]+)"?(.*)$/gm)];
  expect(calls.length).toBeGreaterThan(8);
  for (const [call, method = 'GET', path = '', rest = ''] of calls) {
    const body = / (?:-d|--data-binary) '(.+)'$/.exec(rest)?.[1];
    const headers: Record<string, string> = rest.includes('$TYPE') ? { 'content-type': 'application/json' } : {};
    const { status } = await fetch(emulator.controlUrl + path, {
      method,
      ...(body === undefined ? {} : { body, headers }),
    });
    expect({ call, status }).toEqual({ call, status: 200 });
  }
  expect((await get('/scans/invoice-1')).json).toEqual({ error: 'Aua.' });
});
