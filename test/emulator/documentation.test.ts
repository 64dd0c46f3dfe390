import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { defaultSwitches, documentTypes, faultKinds } from '../../src/emulator/index.js';
import { setup } from './client.js';

const text = readFileSync(new URL('../../docs/emulator.md', import.meta.url), 'utf8');

test('docs/emulator.md names every switch, every kind of fault and every document type', () => {
  const names = [...Object.keys(defaultSwitches), ...Object.keys(faultKinds), ...documentTypes.map(({ slug }) => slug)];
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

test('docs/emulator.md shows control requests that succeed', async () => {
  const { emulator, get } = await setup({ history: 5 });
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
