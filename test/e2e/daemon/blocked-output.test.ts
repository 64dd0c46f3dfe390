import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { runTool } from '../../support/deployment/tools.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { unusedPort } from '../../support/unused-port.js';

const setup = useProgram();

/** A named pipe that is full, and that nobody reads until `read` is called. */
async function fullPipe() {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-pipe-'));
  setup.afterwards(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'stdout');
  await runTool('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  setup.afterwards(() => closeSync(reader));
  const unless = (code: string, work: () => void) => {
    try {
      for (;;) work();
    } catch (error) {
      expect(error).toMatchObject({ code });
    }
  };
  const fill = () => unless('EAGAIN', () => writeSync(reader, '.'.repeat(4096)));
  fill();
  const read = () => {
    let text = '';
    const buffer = Buffer.alloc(65_536);
    unless('EAGAIN', () => {
      text += buffer.toString('utf8', 0, readSync(reader, buffer));
    });
    return text;
  };
  return { writer: openSync(path, 'w'), read, fill };
}

test('stores runs, answers probes and stops on SIGTERM while nobody reads its output', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const { writer, read, fill } = await fullPipe();
  const port = await unusedPort();
  const { PATH = '' } = process.env;
  const env = {
    ...setup.environment(service, database),
    SCANFEED_ADMIN_PORT: String(port),
    SCANFEED_LOG_LEVEL: 'trace',
  };
  const child: ChildProcess = spawn(process.execPath, [inject('programPath'), 'run'], {
    env: { PATH, ...env },
    stdio: ['ignore', writer, 'inherit'],
  });
  setup.afterwards(() => child.kill('SIGKILL'));
  closeSync(writer);
  const exited = once(child, 'exit');
  service.deliver(3);
  const probe = () => fetch(`http://127.0.0.1:${port}/readyz`).then(({ status }) => status);
  await eventually(() => probe().catch(() => 0)).toBe(200);
  const runs = () => database.query<{ runs: number }>('SELECT count(*)::int AS runs FROM scanfeed.runs');
  await eventually(runs).toEqual([{ runs: 3 }]);
  // The first lines follow once the output is read.
  expect(read()).toMatch(/^\.+$/);
  let output = '';
  await eventually(async () => {
    output += read();
    return output.includes('"message":"admin server is listening"');
  }).toBe(true);
  fill();
  service.deliver(4);
  await eventually(runs).toEqual([{ runs: 7 }]);
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});
