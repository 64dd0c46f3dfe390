import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { register } from '../../src/cli/commands/emulator.js';
import { defaultSwitches } from '../../src/emulator/model/switches.js';

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
  register(program, { write });
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
    expect(await switchesWith([])).toEqual(defaultSwitches);
  });

  it.each([
    ['--latency 1.5s', { latencyMs: 1500 }],
    ['--failure-share 0.5', { failureShare: 0.5 }],
    ['--truncated-share 1', { truncatedShare: 1 }],
    ['--test-share 0', { testEnvironmentShare: 0 }],
    ['--new-runs-per-second 2.5', { newRunsPerSecond: 2.5 }],
    ['--corrections-per-minute 6', { correctionsPerMinute: 6 }],
    ['--processing 1m', { processingMs: 60_000 }],
    ['--late-share 0.1 --late-by 2h', { lateShare: 0.1, lateByMs: 7_200_000 }],
    ['--redelivery behind --superseded kept', { redelivery: 'behind', superseded: 'kept' }],
    ['--run-fields required', { runFields: 'required' }],
    ['--run-flag kept --test-mode-field when-true', { runFlag: 'kept', testModeField: 'when-true' }],
    ['--cursors moving --since-boundary exclusive', { cursors: 'moving', sinceBoundary: 'exclusive' }],
    ['--inline-limit 64KiB --max-file 1MiB', { inlineLimitBytes: 65_536, maxFileBytes: 1_048_576 }],
    ['--idempotency-key-required', { idempotencyKeyRequired: true }],
    [
      '--schema-not-ready rechnung:test --schema-not-ready gutschrift:prod --schema-not-ready-status 409',
      {
        notReadySchemas: [
          { documentType: 'rechnung', environment: 'test' },
          { documentType: 'gutschrift', environment: 'prod' },
        ],
        notReadyStatus: 409,
      },
    ],
    ['--status-url-base https://anderswo.example/v1', { statusUrlBase: 'https://anderswo.example/v1' }],
    ['--clock-offset=-5s --no-date-header', { clockOffsetMs: -5000, dateHeader: false }],
    ['--scan-limit 10', { scanLimit: 10 }],
    [
      '--fault {"kind":"cut","share":0.1} --fault {"kind":"hang"}',
      { faults: [{ kind: 'cut', share: 0.1 }, { kind: 'hang' }] },
    ],
  ])('sets switches when it is started with %s', async (args, expected) => {
    expect(await switchesWith(args.split(' '))).toMatchObject(expected);
  });

  it.each([
    '--latency 3',
    '--latency 3x',
    '--failure-share 1.1',
    '--failure-share -1',
    '--redelivery odd',
    '--inline-limit 5',
    '--schema-not-ready rechnung',
    '--fault kaputt',
    '--fault {"kind":"nope"}',
    '--schema-not-ready-status 200',
    '--port 70000',
    '--history viele',
  ])('fails when it is started with %s', async (args) => {
    await expect(run(args.split(' '))).rejects.toThrow();
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
