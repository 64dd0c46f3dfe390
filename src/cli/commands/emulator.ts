import { once } from 'node:events';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { faultKinds } from '../../emulator/model/fault-types.js';
import type { SwitchesPatch } from '../../emulator/model/switch-types.js';
import { switchesSchema } from '../../emulator/model/switches.js';
import { type ApiKey, defaultOptions } from '../../emulator/options.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { numberOption, periodOption } from '../context/parse-options.js';
import { untilStopped } from '../context/stop-signals.js';

interface Given {
  host: string;
  port: number;
  key?: ApiKey[];
  seed: number;
  history: number;
  historyPeriod: number;
  runBytes: number;
  switches?: SwitchesPatch;
  json?: true;
}

const examples = `
Examples:
  A service with 5000 finished runs on port 8899:
    $ scanfeed emulator
  A live service: new runs, corrections behind stored cursors, some late runs:
    $ scanfeed emulator --switches '{"newRunsPerSecond":2,"lateShare":0.01,
        "correctionsPerMinute":6,"redelivery":"behind"}'
  A faulty service: slow, 503 for 5% of the requests, 1% of the bodies cut:
    $ scanfeed emulator --switches '{"latencyMs":300,
        "faults":[{"kind":"cut","share":0.01},
                  {"kind":"status","status":503,"retryAfter":2,"share":0.05}]}'
  An additional key without an organization:
    $ scanfeed emulator --key secret=demo --key stray=
  At run time: slower responses, three corrections, and all cursors rejected:
    $ CONTROL=localhost:8899/_emulator TYPE='content-type: application/json'
    $ curl -X PATCH $CONTROL/switches -H "$TYPE" -d '{"latencyMs":500}'
    $ curl -X POST $CONTROL/corrections -H "$TYPE" -d '{"count":3}'
    $ curl -X POST $CONTROL/cursors/invalidate
  OpenAPI document of the service:
    $ curl $CONTROL/openapi.json`;

/** Returns the switches and the kinds of faults, formatted like options. */
function switchHelp(command: Command): string {
  const help = command.createHelp();
  const list = (effects: Readonly<Record<string, string>>) => {
    const width = Math.max(...Object.keys(effects).map((name) => name.length));
    return Object.entries(effects).map(([name, effect]) => help.formatItem(name, width, effect, help));
  };
  const switches = Object.entries(switchesSchema.shape).map(([name, schema]) => {
    const inner = schema.unwrap();
    const choices = 'options' in inner ? `${inner.options.join(', ')}; ` : '';
    return [name, `${schema.description} (${choices}default: ${JSON.stringify(schema.parse(undefined))})`];
  });
  return `
Switches:
${list(Object.fromEntries(switches)).join('\n')}

Kinds of faults (besides "kind" a fault has "operation": feed, run, submit or
any; "next": a number of requests; "share": 0 to 1):
${list(faultKinds).join('\n')}
`;
}

/** Maximum time to close its connections, milliseconds. */
const CLOSE_MS = 2_000;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('emulator')
    .description('Run an emulated Document Recognition Service, for evaluation and staging.')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 takes a free one', numberOption(0, 65_535), 8899)
    .option(
      '--key <key=organization>',
      'an API key and its organization; "key=" is a key without an organization; repeatable',
      apiKey,
    )
    .option('--seed <number>', 'seed of all random values', numberOption(0), 1)
    .option('--history <runs>', 'finished runs at the start', numberOption(0), 5000)
    .addOption(
      new Option('--history-period <duration>', 'period before the start that the history covers')
        .argParser(periodOption)
        .default(defaultOptions.historyPeriodMs, '30d'),
    )
    .option('--run-bytes <bytes>', 'average size of a feed entry', numberOption(1), defaultOptions.runBytes)
    .option('--switches <json>', 'switches at the start, as for PATCH /_emulator/switches', switches)
    .option('--json', 'print the address and the key as JSON');
  command
    .addHelpText('after', () => switchHelp(command) + examples)
    .action((options: Given) => untilStopped((signal) => serve(options, io, signal), CLOSE_MS));
}

function apiKey(value: string, earlier: readonly ApiKey[] = []): ApiKey[] {
  const at = value.lastIndexOf('=');
  const key = at === -1 ? value : value.slice(0, at);
  const organization = at === -1 ? 'demo' : value.slice(at + 1);
  return [...earlier, { key, organization: organization === '' ? null : organization }];
}

function switches(text: string): SwitchesPatch {
  try {
    return JSON.parse(text) as SwitchesPatch;
  } catch {
    throw new InvalidArgumentError('Write them as JSON, like \'{"latencyMs":300}\'.');
  }
}

async function serve(options: Given, io: CommandProcess, signal: AbortSignal): Promise<void> {
  const emulator = await start(options);
  const { url, apiKey: key, controlUrl } = emulator;
  io.write(
    options.json
      ? `${JSON.stringify({ url, apiKey: key, controlUrl })}\n`
      : `Emulated service: ${url}\nAPI key:          ${key}\nSwitches:         ${controlUrl}/switches\nPress Ctrl-C to stop.\n`,
  );
  if (!signal.aborted) await once(signal, 'abort');
  await emulator.close();
}

async function start(options: Given) {
  const { startEmulator } = await import('../../emulator/index.js');
  const { key: apiKeys = defaultOptions.apiKeys, historyPeriod: historyPeriodMs, ...others } = options;
  try {
    return await startEmulator({ ...others, apiKeys, historyPeriodMs });
  } catch (error) {
    throw explained(error, `${options.host}:${options.port}`);
  }
}

function explained(error: unknown, address: string): unknown {
  const { code, name } = (error ?? {}) as { code?: string; name?: string };
  if (code === 'EADDRINUSE') return new CommandFailure(`${address} is in use; choose another with --port`);
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CommandFailure(`cannot listen on ${address} (${code}); choose another with --host and --port`);
  }
  if (name === 'ZodError') return new CommandFailure(`invalid switch or fault: ${issuesOf(error)}`, EXIT.usage);
  return error;
}

function issuesOf(error: unknown): string {
  const { issues } = error as { issues: readonly { path: readonly PropertyKey[]; message: string }[] };
  return issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`).join('; ');
}
