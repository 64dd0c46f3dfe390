import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { testFolder } from '../support/deployment/chart.js';
import { PLATFORM } from '../support/deployment/container.js';
import { requireTool, runTool } from '../support/deployment/tools.js';
import { readText } from '../support/documents.js';
import { eventually } from '../support/program/daemon.js';
import { unusedPort } from '../support/unused-port.js';

const ENGINE = process.env.CONTAINER_ENGINE ?? 'podman';
const IMAGE = process.env.SCANFEED_IMAGE ?? 'localhost/scanfeed:test';
/** The services whose images are built here or replaced by others; those of Prometheus and Grafana are their makers'. */
const TRIED = ['postgres', 'emulator', 'scanfeed'];

/** Writes compose.yaml with the tried services, the given image and a free port. Returns how to call the engine with it. */
async function writeProject(port: number) {
  const file = join(await testFolder(), 'compose.yaml');
  const { services, ...rest } = parse(readText('compose.yaml'));
  const tried = TRIED.map((name) => {
    const { ports: _, ...service } = services[name];
    const image = service.image.startsWith('$') ? IMAGE : service.image;
    return [name, { ...service, image, ...(name === 'scanfeed' ? { ports: [`127.0.0.1:${port}:9847`] } : {}) }];
  });
  // An image of PostgreSQL without a locale would create a database that is not UTF8.
  services.postgres.environment.LANG = 'C.UTF-8';
  const volumes = { postgres: null };
  await writeFile(file, stringify({ ...rest, name: `compose${port}`, volumes, services: Object.fromEntries(tried) }));
  const [program, ...before] = ENGINE === 'docker' ? ['docker', 'compose'] : ['podman-compose'];
  return (...args: string[]) => runTool(program as string, [...before, '--file', file, ...args]);
}

test('compose.yaml starts a database, the emulated service and scanfeed, which catches up', async (context) => {
  context.skip(PLATFORM !== undefined, 'the image is that of another platform');
  if (ENGINE === 'podman') requireTool(context, 'podman-compose');
  const port = await unusedPort();
  const compose = await writeProject(port);
  onTestFinished(async () => {
    await compose('down', '--volumes', '--timeout', '5');
  });
  const { status, stderr } = await compose('up', '--detach');
  expect(status, stderr).toBe(0);
  const report = async () => (await fetch(`http://127.0.0.1:${port}/status.json`)).json();
  await eventually(report, { timeout: 120_000 }).toMatchObject({ feed: 'invoices', caughtUp: true });
  expect(await compose('exec', '-T', 'scanfeed', 'scanfeed', 'status')).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^Runs: +\d{4}$/m),
  });
  const sql = 'SELECT feed FROM scanfeed_reporting.sync_status';
  expect(await compose('exec', '-T', 'scanfeed', 'scanfeed', 'sql', '--csv', sql)).toMatchObject({
    status: 0,
    stdout: 'feed\r\ninvoices\r\n',
  });
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(metrics).toMatch(/^scanfeed_build_info\{.*feed="invoices".*\} 1$/m);
});
