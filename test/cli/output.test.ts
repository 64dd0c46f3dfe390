import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { watchOutput } from '../../src/cli/context/command-process.js';

/** A stream of which every write ends in this error, or in none. */
function failing(error: Error | null): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done(error) });
}

const errno = (code: string, message: string) => Object.assign(new Error(message), { code });

test.each([
  ['all of it went out', null, null],
  ['its reader has gone', errno('EPIPE', 'write EPIPE'), null],
  [
    'the disk is full',
    errno('ENOSPC', 'ENOSPC: no space left on device, write'),
    'ENOSPC: no space left on device, write',
  ],
])('output is waited for where %s, and what was lost is known', async (_, error, lost) => {
  const stream = failing(error);
  const output = watchOutput(stream);
  stream.write('a result');
  expect(await output.flushed()).toBe(lost);
});

test('flushed resolves to null when nothing was written', async () => {
  const output = watchOutput(failing(errno('ENOSPC', 'ENOSPC: no space left on device, write')));
  expect(await output.flushed()).toBeNull();
});

test('flushed waits when the output is slow', async () => {
  const gone: string[] = [];
  const slow = new Writable({
    write: (chunk, _encoding, done) => {
      gone.push(String(chunk));
      setImmediate(done);
    },
  });
  const output = watchOutput(slow);
  for (const part of ['a', 'b', 'c']) slow.write(part);
  expect(await output.flushed()).toBeNull();
  expect(gone.join('')).toBe('abc');
});
