import { access, constants, mkdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../../core/clock.js';
import { PACKAGE_FOLDER, packageVersion } from '../../core/package.js';
import { migrateSchema } from '../../daemon/prepare-schema.js';
import { type Daemon, onlyFeed, runDaemon } from '../../daemon/run-daemon.js';
import { startDemoService } from '../../demo/demo-history.js';
import { findFreePort, isPortFree } from '../../demo/ports.js';
import { showProgress } from '../../demo/progress.js';
import { createLogger } from '../../observability/log/logger.js';
import { environmentWith, isSet, readSettings, type SettingsFor } from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import { thisProcess } from '../context/command-process.js';
import { CommandFailure } from '../context/exit.js';
import { untilStopped } from '../context/stop-signals.js';
import { withDatabase } from '../context/with-feed.js';
import { printable } from '../terminal/format.js';

const examples = `
A configured service or database is used; otherwise an embedded one runs.

Examples:
  $ scanfeed demo
  The real service into an embedded PostgreSQL:
    $ export SCANFEED_BASE_URL=https://recognition.example/v1
    $ SCANFEED_API_KEY_FILE=key scanfeed demo
  The emulated service into your PostgreSQL:
    $ DATABASE_URL=postgres://me@localhost/invoices scanfeed demo`;

/** Folder of the demo's data, below the current folder. */
const DIRECTORY = '.scanfeed';
/** Folder of a PostgreSQL that was downloaded, below that of the data. */
const DOWNLOAD = 'postgresql';
/** How to run this program: as an installed package, or from a checkout. */
const PROGRAM = PACKAGE_FOLDER.pathname.includes('/node_modules/') ? 'npx scanfeed' : 'node dist/main.js';
const ADMIN_PORT = 9847;
const ANY_PORT = 0;
const SERVICE_PORT = 8899;
/** Wildcard addresses, which include the loopback address. */
const EVERY_ADDRESS: readonly string[] = ['0.0.0.0', '::'];
const POSTGRES_PORT = 54_320;
const SHUTDOWN_MS = 20_000;
/** Number of parts if both the database and the service are embedded. */
const BOTH = 2;
/** Interval between records of the time that the demo has run, milliseconds. */
const RECORD_INTERVAL_MS = 2_000;

export function register(program: Command): void {
  program
    .command('demo')
    .description(
      'Try scanfeed: run the daemon with an embedded PostgreSQL and an emulated service unless they are configured.',
    )
    .option('--directory <folder>', 'folder for the data', DIRECTORY)
    .option('--host <address>', 'address of the pages and the service; 0.0.0.0 in a container', '127.0.0.1')
    .option('--yes', 'download a PostgreSQL without asking if none is installed')
    .addHelpText('after', examples)
    .action(runDemo);
}

interface DemoOptions {
  readonly directory: string;
  readonly host: string;
  readonly yes?: boolean;
}

/** An embedded part: its environment variables, the lines to print, and how to stop it. */
interface Embedded {
  readonly variables: Readonly<Record<string, string>>;
  readonly lines: readonly string[];
  stop(): Promise<void>;
}

async function runDemo(options: DemoOptions): Promise<void> {
  await untilStopped(async (signal) => {
    const embedded: Embedded[] = [];
    try {
      const settings = await startEmbedded(embedded, options, signal);
      if (settings === null) return;
      const daemon = startDaemon(settings, signal);
      await daemon.admin.settled;
      process.stdout.write(whereToLook(embedded, daemon));
      await Promise.all([showProgress(() => daemon.reports()[0], signal), daemon.stopped]);
    } finally {
      await Promise.all(embedded.map((part) => part.stop()));
    }
  }, SHUTDOWN_MS);
}

/** Starts the missing parts and adds them to `embedded`. Returns the settings of the daemon; null when the signal aborts. */
async function startEmbedded(
  embedded: Embedded[],
  { directory, host, yes = false }: DemoOptions,
  signal: AbortSignal,
): Promise<SettingsFor<Group> | null> {
  try {
    const admin = await adminDefaults(host);
    if (!isSet(['DATABASE_URL', 'PGHOST'])) embedded.push(await embedPostgres(resolve(directory), yes, signal));
    if (!isSet(['SCANFEED_BASE_URL'])) embedded.push(await embedService(resolve(directory), host));
    const variables = Object.assign(admin, ...embedded.map((part) => part.variables));
    const settings = readSettings(environmentWith(variables));
    if (embedded.length === BOTH) await followEmulator(settings);
    return settings;
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

async function prepareFolder(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`cannot write to ${directory} (${code}); choose another folder with --directory`);
  }
}

/** Continues the feed at the emulator's address: its port may have changed since the last start, but it is the same service. */
async function followEmulator({ database: settings, feed, service }: SettingsFor<Group>): Promise<void> {
  await migrateSchema(settings);
  await withDatabase(settings, ({ feeds }) => feeds.setBaseUrl(feed.name, service.baseUrl));
}

/** Starts the daemon with the error logs that do not concern a stage. The progress shows everything else. */
function startDaemon(settings: SettingsFor<Group>, signal: AbortSignal): Daemon {
  const overProgress = process.stdout.isTTY ? '\r\x1b[K' : '';
  const logger = createLogger({
    level: 'error',
    version: packageVersion(),
    destination: { write: (line) => void process.stdout.write(`${overProgress}${describeLine(line)}`) },
  });
  return runDaemon(settings, onlyFeed(settings), { logger, tracer: null, clock: systemClock }, signal);
}

function describeLine(json: string): string {
  const { stage, message, remedy, error } = JSON.parse(json) as Record<string, unknown> & { error?: Error };
  if (stage !== undefined) return '';
  return `${printable([message, error?.message, remedy].filter(Boolean).join(': '))}\n`;
}

async function embedPostgres(directory: string, yes: boolean, signal: AbortSignal): Promise<Embedded> {
  const { provideBinaries, requireNpm, startEmbeddedPostgres } = await import('../../demo/embedded-postgres/index.js');
  await requireNpm(join(directory, DOWNLOAD));
  await prepareFolder(directory);
  const binariesFrom = await provideBinaries(join(directory, DOWNLOAD), yes, thisProcess, signal);
  const postgres = await startEmbeddedPostgres({ directory, port: POSTGRES_PORT, signal, binariesFrom });
  return {
    variables: { DATABASE_URL: postgres.url },
    lines: [
      `Embedded PostgreSQL ${postgres.cluster.version}; any client can connect with the URL in ${postgres.urlFile}, for example`,
      `  DATABASE_URL=$(cat "${postgres.urlFile}") ${PROGRAM} sql 'SELECT * FROM sync_status'`,
    ],
    stop: () => postgres.stop(),
  };
}

async function embedService(directory: string, host: string): Promise<Embedded> {
  await prepareFolder(directory);
  const port = await findFreePort(SERVICE_PORT, host);
  const { emulator, noteRunning } = await startDemoService(join(directory, 'demo-service.json'), { host, port });
  await noteRunning();
  const timer = setInterval(() => void noteRunning().catch(() => {}), RECORD_INTERVAL_MS);
  return {
    variables: { SCANFEED_BASE_URL: emulator.url, SCANFEED_API_KEY: emulator.apiKey, SCANFEED_ALLOW_HTTP: 'true' },
    lines: [
      `Emulated service at ${emulator.url}, key ${emulator.apiKey}; its switches: ${emulator.controlUrl}/switches`,
    ],
    stop: async () => {
      clearInterval(timer);
      // If the folder was deleted, the next demo starts from scratch.
      await noteRunning().catch(() => {});
      await emulator.close();
    },
  };
}

/**
 * Returns defaults for the admin server. If the default port is in use, any free port is used. A port that was configured
 * must be available: otherwise that address would show another program's page, or none.
 */
async function adminDefaults(wantedHost: string): Promise<Record<string, string>> {
  const defaults = { SCANFEED_ADMIN_HOST: wantedHost, SCANFEED_ADMIN_PORT: String(ADMIN_PORT) };
  const { host, port } = readSettings(environmentWith(defaults), { need: ['admin'] }).admin;
  if (await isPortFree(port, host)) return defaults;
  if (!isSet(['SCANFEED_ADMIN_PORT'])) {
    if (await isPortFree(ANY_PORT, host)) return { ...defaults, SCANFEED_ADMIN_PORT: String(ANY_PORT) };
    throw new CommandFailure(`cannot listen on ${host}; choose another address with --host or SCANFEED_ADMIN_HOST`);
  }
  throw new CommandFailure(
    `cannot listen on port ${port} of ${host}, which is probably in use; change SCANFEED_ADMIN_PORT, or unset it to use a free port`,
  );
}

function whereToLook(embedded: readonly Embedded[], { admin }: Daemon): string {
  const address = admin.address();
  const served = address === null ? [] : [pagesAt(address)];
  return `${[...embedded.flatMap((part) => part.lines), ...served, 'Press Ctrl-C to stop; the next start resumes from here.'].join('\n')}\n\n`;
}

function pagesAt({ address, family, port }: AddressInfo): string {
  const instead = isSet(['SCANFEED_ADMIN_PORT']) || port === ADMIN_PORT ? '' : ` (port ${ADMIN_PORT} is in use)`;
  const url = `http://${hostOf(address, family)}:${port}`;
  return `Status page ${url}/${instead}, metrics ${url}/metrics`;
}

/** Returns the host as it is written in a URL on this machine. */
function hostOf(address: string, family: string): string {
  if (EVERY_ADDRESS.includes(address)) return '127.0.0.1';
  return family === 'IPv6' ? `[${address}]` : address;
}
