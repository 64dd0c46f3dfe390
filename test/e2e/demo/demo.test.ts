import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

/** Occupies a port until the test ends. */
async function takePort(port: number, host = '127.0.0.1'): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening').catch(() => {}); // taken already
  setup.afterwards(() => server.close());
  return port || (server.address() as AddressInfo).port;
}

async function makeFolder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'scanfeed-demo-'));
  setup.afterwards(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function startDemo(env: Readonly<Record<string, string>>) {
  const directory = await makeFolder();
  const { url } = await setup.createDatabase();
  return { directory, demo: setup.program(['demo', '--directory', directory], { DATABASE_URL: url, ...env }) };
}

test('serves the status page on another port when the default port is in use', async () => {
  await takePort(9847);
  const { demo } = await startDemo({});
  const page = /^Status page (http:\/\/127\.0\.0\.1:\d+\/) \(port 9847 is in use\), metrics /m;
  await eventually(() => demo.stdout).toMatch(page);
  const [, url = ''] = page.exec(demo.stdout) ?? [];
  expect((await fetch(url)).status).toBe(200);
  expect(await demo.stop('SIGINT')).toEqual({ code: 0, signal: null });
});

test('serves the configured address, and ends without an error when its folder is deleted', async () => {
  await takePort(9847, '127.0.0.2');
  const { demo, directory } = await startDemo({ SCANFEED_ADMIN_HOST: '127.0.0.2' });
  const page = /^Status page (http:\/\/127\.0\.0\.2:\d+\/) \(port 9847 is in use\), metrics \1metrics$/m;
  await eventually(() => demo.stdout).toMatch(page);
  const [, url = ''] = page.exec(demo.stdout) ?? [];
  expect((await fetch(url)).status).toBe(200);
  await rm(directory, { recursive: true, maxRetries: 5 }); // the demo may write a file meanwhile
  expect(await demo.stop('SIGINT')).toEqual({ code: 0, signal: null });
  expect(demo.stderr).toBe('');
});

test('serves the pages and the emulated service where --host says', async () => {
  const directory = await makeFolder();
  const { url } = await setup.createDatabase();
  const demo = setup.program(['demo', '--directory', directory, '--host', '0.0.0.0'], { DATABASE_URL: url });
  const printed =
    /^Emulated service at http:\/\/127\.0\.0\.1:(\d+)\/v1, [\s\S]*^Status page http:\/\/127\.0\.0\.1:(\d+)\/[\s\S]*^up to date: /m;
  await eventually(() => demo.stdout, { timeout: 60_000 }).toMatch(printed);
  const [, service, page] = printed.exec(demo.stdout) ?? [];
  expect((await fetch(`http://127.0.0.2:${service}/_emulator/switches`)).status).toBe(200);
  expect((await fetch(`http://127.0.0.2:${page}/`)).status).toBe(200);
  expect(await demo.stop('SIGINT')).toEqual({ code: 0, signal: null });
  expect(demo.stderr).toBe('');
});

test('reports when it cannot listen on the configured address', async () => {
  const demo = setup.program(['demo', '--directory', await makeFolder()], { SCANFEED_ADMIN_HOST: '192.0.2.1' });
  expect(await demo.exited).toEqual({ code: 1, signal: null });
  expect(demo.stderr).toBe(
    'scanfeed: cannot listen on 192.0.2.1; choose another address with --host or SCANFEED_ADMIN_HOST\n',
  );
});

test('ends with the remedy and starts nothing when the configured port is in use', async () => {
  const port = await takePort(0);
  const { demo, directory } = await startDemo({ SCANFEED_ADMIN_PORT: String(port) });
  expect(await demo.exited).toEqual({ code: 1, signal: null });
  expect(demo.stdout).toBe('');
  expect(demo.stderr).toBe(
    `scanfeed: cannot listen on port ${port} of 127.0.0.1, which is probably in use; change SCANFEED_ADMIN_PORT, or unset it to use a free port\n`,
  );
  expect(await readdir(directory)).toEqual([]);
});

test('reports when its folder cannot be created', async () => {
  const directory = await makeFolder();
  const file = join(directory, 'taken');
  await writeFile(file, '');
  const demo = setup.program(['demo', '--directory', file], {});
  expect(await demo.exited).toEqual({ code: 1, signal: null });
  expect(demo.stderr).toBe(`scanfeed: cannot write to ${file} (EEXIST); choose another folder with --directory\n`);
});

test('prints the remedy of an error once, then how often it has occurred and when it is retried', async () => {
  const { demo } = await startDemo({});
  await eventually(() => demo.stdout, { timeout: 60_000 }).toMatch(/^up to date: /m);
  const [, switches = ''] = /its switches: (\S+)/.exec(demo.stdout) ?? [];
  const body = JSON.stringify({ faults: [{ kind: 'status', status: 401 }] });
  await fetch(switches, { method: 'PATCH', headers: { 'content-type': 'application/json' }, body });
  const remedy =
    /^the delivery feed .* returned 401: .*; check the key; .* \(http_401, runbook ScanfeedAuthenticationFailing\)$/gm;
  const state = /^action required, next attempt (in [^(]+|now )\(http_401, for [^,]+, \d+ failures?\)$/m;
  await eventually(() => demo.stdout, { timeout: 60_000 }).toMatch(state);
  expect(demo.stdout.match(remedy)).toHaveLength(1);
  expect(await demo.stop('SIGINT')).toEqual({ code: 0, signal: null });
});
