import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { register } from '../../src/cli/commands/emulator.js';
import { thisProcess } from '../../src/cli/context/command-process.js';
import { switchesSchema } from '../../src/emulator/model/switches.js';

/** Runs the command until `use` has processed its output. */
async function run(
  args: readonly string[],
  use: (printed: string) => Promise<void> = async () => undefined,
): Promise<void> {
  const program = new Command()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
  let used: Promise<void> = Promise.resolve();
  const write = (text: string | Uint8Array) => {
    used = use(String(text)).finally(() => process.emit('SIGTERM', 'SIGTERM'));
  };
  register(program, { ...thisProcess, write });
  for (const command of program.commands) command.exitOverride().configureOutput({ writeErr: () => undefined });
  await program.parseAsync(['emulator', '--port', '0', ...args], { from: 'user' });
  await used;
}

async function switchesWith(args: readonly string[]): Promise<Record<string, unknown>> {
  let switches: Record<string, unknown> = {};
  await run(['--json', ...args], async (printed) => {
    const { controlUrl } = JSON.parse(printed) as { controlUrl: string };
    switches = (await (await fetch(`${controlUrl}/switches`)).json()) as Record<string, unknown>;
  });
  return switches;
}

describe('scanfeed emulator', () => {
  it('prints address and key, and serves a history until it is stopped', async () => {
    let url = '';
    await run(['--history', '7'], async (printed) => {
      url = /http:\S+\/v1/.exec(printed)?.[0] ?? '';
      const authorization = `Bearer ${/API key: +(\S+)/.exec(printed)?.[1]}`;
      const response = await fetch(`${url}/scans?status=completed,failed&environment=all`, {
        headers: { authorization },
      });
      expect(((await response.json()) as { items: unknown[] }).items).toHaveLength(7);
    });
    await expect(fetch(`${url}/scans`)).rejects.toThrow();
  });

  it('starts with the default switches when no option is set', async () => {
    expect(await switchesWith([])).toEqual(switchesSchema.parse({}));
  });

  it('sets the given switches when it is started', async () => {
    const given = {
      latencyMs: 15,
      redelivery: 'behind',
      dateHeader: false,
      notReadySchemas: [{ documentType: 'rechnung', environment: 'test' }],
      faults: [{ kind: 'hang', operation: 'submit' }],
    };
    expect(await switchesWith(['--switches', JSON.stringify(given)])).toMatchObject({
      ...switchesSchema.parse({}),
      ...given,
    });
  });

  it.each([
    '--switches kaputt',
    '--switches 3',
    '--switches {"latencyMs":"3x"}',
    '--switches {"failureShare":1.1}',
    '--switches {"redelivery":"odd"}',
    '--switches {"latency":3}',
    '--switches {"faults":[{"kind":"nope"}]}',
    '--history-period 3x',
    '--run-bytes 0',
    '--port 70000',
    '--history viele',
  ])('fails when it is started with %s', async (args) => {
    await expect(run(args.split(' '))).rejects.toThrow();
  });

  it('names every switch with its default in its help', () => {
    const program = new Command();
    register(program);
    const lines: string[] = [];
    program.commands[0]?.configureOutput({ writeOut: (text) => void lines.push(text) }).outputHelp();
    const help = lines.join('');
    const text = help.replaceAll(/\s+/g, ' ');
    for (const name of Object.keys(switchesSchema.shape)) expect(help).toMatch(new RegExp(`^ +${name} `, 'm'));
    expect(text).toContain('processing time of a submission (default: 2000)');
    expect(text).toContain('(stable, moving; default: "stable")');
  });

  it('accepts keys with and without an organization', async () => {
    await run(['--json', '--key', 'one=acme', '--key', 'stray=', '--key', 'plain'], async (printed) => {
      const { url, apiKey } = JSON.parse(printed) as { url: string; apiKey: string };
      expect(apiKey).toBe('one');
      const statuses = [];
      for (const key of ['one', 'stray', 'plain', 'other']) {
        statuses.push((await fetch(`${url}/scans`, { headers: { authorization: `Bearer ${key}` } })).status);
      }
      expect(statuses).toEqual([200, 403, 200, 401]);
    });
  });

  it('fails with one line when the port is in use', async () => {
    await run(['--json'], async (printed) => {
      const { port } = new URL((JSON.parse(printed) as { url: string }).url);
      await expect(run(['--port', port])).rejects.toMatchObject({
        message: `127.0.0.1:${port} is in use; choose another with --port`,
        exitCode: 1,
      });
    });
  });
});
