import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import type { Program } from '../../support/program/program.js';
import { useProgram } from '../../support/program/setup.js';
import { unusedPort } from '../../support/unused-port.js';

const setup = useProgram();

async function outcome(program: Program) {
  const { code } = await program.exited;
  return { code, stdout: program.stdout, stderr: program.stderr };
}

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => outcome(setup.program(args, env));

describe('scanfeed', () => {
  test('prints its version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
  });

  test('prints its help and that of every command without settings', async () => {
    const { code, stdout, stderr } = await run(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [, list = ''] = stdout.split('Commands:\n');
    const commands = [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name as string);
    expect(commands).toEqual(expect.arrayContaining(['run', 'migrate', 'status', 'emulator', 'demo', 'help']));
    const helps = await Promise.all(
      commands.filter((name) => name !== 'help').map(async (name) => ({ name, ...(await run([name, '--help'])) })),
    );
    for (const help of helps) {
      expect(help).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(`scanfeed ${help.name}`) });
      expect(help.stdout).toMatch(/\n\nExit codes: 0 success, (.*\n)+$/);
      expect(help.stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    }
  });

  test.skipIf(!existsSync('/dev/full'))('fails with the reason when its output cannot be written', async () => {
    const program = [inject('programPath'), '--version'];
    const failure = await promisify(execFile)('sh', ['-c', '"$0" "$@" >/dev/full', process.execPath, ...program]).then(
      () => null,
      ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
    );
    expect(failure).toEqual({
      code: 1,
      stderr: 'scanfeed: not all of the output could be written: ENOSPC: no space left on device, write\n',
    });
  });

  test.each([
    ['an unknown command', ['frobnicate'], /^scanfeed: unknown command 'frobnicate' \(see --help\)\n$/],
    ['a misspelt command', ['statsu'], /^scanfeed: unknown command 'statsu' \(Did you mean status\?\) .*\n$/],
    ['a name that every object has', ['constructor'], /^scanfeed: unknown command 'constructor' \(see --help\)\n$/],
    ['an unknown option', ['status', '--loud'], /^scanfeed: unknown option '--loud' \(see --help\)\n$/],
    ['an argument too many', ['migrate', 'everything'], /^scanfeed: too many arguments .*\n$/],
  ])('answers %s with one line and the exit code 64', async (_, args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(message);
  });

  test('prints its help and fails with 64 when no command is given', async () => {
    const { code, stdout, stderr } = await run([]);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toContain('Usage: scanfeed');
  });
});

test.skipIf(!existsSync('/dev/full'))(
  'the daemon continues, and ends with 0, while its log cannot be written',
  async () => {
    const port = await unusedPort();
    const env = {
      PATH: process.env.PATH,
      SCANFEED_BASE_URL: `http://127.0.0.1:${await unusedPort()}/v1`,
      SCANFEED_API_KEY: setup.secrets.apiKey,
      DATABASE_URL: `postgres://scanfeed@127.0.0.1:${await unusedPort()}/scanfeed`,
      SCANFEED_ADMIN_HOST: '127.0.0.1',
      SCANFEED_ADMIN_PORT: String(port),
    };
    const args = ['-c', 'exec "$0" "$1" run >/dev/full', process.execPath, inject('programPath')];
    const daemon = execFile('sh', args, { env });
    const ended = once(daemon, 'exit');
    const status = () => fetch(`http://127.0.0.1:${port}/status.json`).then((answer) => answer.json());
    await eventually(status).toMatchObject({ currentErrors: [{ kind: 'connection', failures: expect.any(Number) }] });
    daemon.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  },
);

test('the daemon continues when its terminal closes', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const { PATH } = process.env;
  const daemon = spawn(process.execPath, [inject('programPath'), 'run'], {
    env: { PATH, ...setup.environment(service, database) },
  });
  setup.afterwards(() => daemon.kill('SIGKILL'));
  const ended = once(daemon, 'exit');
  await once(daemon.stdout, 'data');
  daemon.stdout.destroy();
  daemon.stderr.destroy();
  daemon.kill('SIGHUP');
  service.deliver(1);
  await eventually(() => database.query('SELECT count(*)::int AS runs FROM scanfeed.runs').catch(() => null)).toEqual([
    { runs: 1 },
  ]);
  daemon.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test.runIf(existsSync('/usr/bin/script'))('the daemon ends with 0 after its terminal has closed', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-terminal-'));
  setup.afterwards(() => rm(folder, { recursive: true }));
  const { PATH } = process.env;
  const env = { PATH, NODE: process.execPath, PROGRAM: inject('programPath'), ...setup.environment(service, database) };
  const command = `trap '' HUP; "$NODE" "$PROGRAM" run & echo $! >pid; wait $!; echo $? >code`;
  const terminal = spawn('/usr/bin/script', ['--quiet', '--command', command, '/dev/null'], { env, cwd: folder });
  setup.afterwards(() => terminal.kill('SIGKILL'));
  const runs = () => database.query('SELECT count(*)::int AS runs FROM scanfeed.runs').catch(() => null);
  service.deliver(1);
  await eventually(runs).toEqual([{ runs: 1 }]);
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'));
  setup.afterwards(() => {
    if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
  });
  terminal.kill('SIGKILL');
  service.deliver(1);
  await eventually(runs).toEqual([{ runs: 2 }]);
  process.kill(pid, 'SIGTERM');
  await eventually(() => readFile(join(folder, 'code'), 'utf8').catch(() => null)).toBe('0\n');
});

describe('scanfeed migrate', () => {
  test('applies missing migrations once', async () => {
    const database = await setup.createDatabase();
    const env = { DATABASE_URL: database.url, SCANFEED_READER_ROLE: database.role };
    const first = await run(['migrate'], env);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toMatch(/^Applied to the schema scanfeed:\n( {2}\d+ \w+\n)+$/);
    expect(await run(['migrate'], env)).toEqual({
      code: 0,
      stdout: 'The schema scanfeed is up to date.\n',
      stderr: '',
    });
    expect(JSON.parse((await run(['migrate', '--json'], env)).stdout)).toEqual({
      schema: 'scanfeed',
      applied: [],
      readerRole: true,
    });
  });

  test('fails when only a newer release can use the schema', async () => {
    const database = await setup.createDatabase();
    const env = { DATABASE_URL: database.url, SCANFEED_READER_ROLE: database.role };
    await run(['migrate'], env);
    const newer = 'INSERT INTO scanfeed.migrations (version, name, works_from) VALUES (9998, $1, $2)';
    await database.query(newer, ['adds_only', 1]);
    expect(await run(['migrate'], env)).toMatchObject({ code: 0, stderr: '' });
    await database.query('UPDATE scanfeed.migrations SET works_from = 9998 WHERE version = 9998', []);
    expect(await run(['migrate'], env)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'scanfeed: the schema scanfeed is at version 9998, too new for this release of scanfeed: run the newer release\n',
    });
  });
});

describe('scanfeed status', () => {
  test('writes its whole output when it exceeds a pipe and the reader is slow', async () => {
    const database = await setup.createDatabase();
    const env = { DATABASE_URL: database.url };
    await run(['migrate'], env);
    const address = `https://service.example/${'x'.repeat(2_000_000)}`;
    await database.query("INSERT INTO scanfeed.feeds (name, base_url, filters) VALUES ('default', $1, '{}')", [
      address,
    ]);
    const { code, stdout, stderr } = await run(['status', '--json'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject([{ baseUrl: address }]);
  });

  test('reports that no feed exists when none was started', async () => {
    const database = await setup.createDatabase();
    const env = { DATABASE_URL: database.url };
    await run(['migrate'], env);
    expect(await run(['status'], env)).toEqual({
      code: 0,
      stdout: 'No feed has been started in the schema scanfeed.\n',
      stderr: '',
    });
    expect(await run(['status', '--json'], env)).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
  });

  test('fails and shows the action when the schema was never migrated', async () => {
    const database = await setup.createDatabase();
    const { code, stdout, stderr } = await run(['status'], { DATABASE_URL: database.url });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^scanfeed: the schema scanfeed does not exist: .*run `scanfeed migrate`\n$/);
  });
});

test.each(['status', 'migrate'])(
  '%s reports in one line, with the exit code 75, that the database is unavailable',
  async (command) => {
    const port = await unusedPort();
    const url = `postgres://someone:${setup.secrets.password}@127.0.0.1:${port}/app`;
    const { code, stdout, stderr } = await run([command], { DATABASE_URL: url });
    expect({ code, stdout }).toEqual({ code: 75, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(
        `^scanfeed: no connection to PostgreSQL at 127\\.0\\.0\\.1:${port} \\(ECONNREFUSED\\): nothing listens there[^\\n]+\n$`,
      ),
    );
  },
);

test.each(['status', 'migrate'])(
  '%s names only the settings that it needs, with the exit code 78, when one is not set',
  async (command) => {
    const { code, stdout, stderr } = await run([command], { SCANFEED_BASE_URL: 'no address' });
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(/^scanfeed: 1 setting is wrong:\n {2}DATABASE_URL is not set; expected: .*\n$/);
  },
);
