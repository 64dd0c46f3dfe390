import { access, constants, mkdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { PACKAGE_FOLDER, packageVersion } from '../../core/package.js';
import { migrateSchema } from '../../daemon/prepare-schema.js';
import { type Daemon, runDaemon } from '../../daemon/run-daemon.js';
import { startDemoService } from '../../demo/demo-history.js';
import { findFreePort, isPortFree } from '../../demo/ports.js';
import { showProgress } from '../../demo/progress.js';
import { createLogger } from '../../observability/log/logger.js';
import { environmentWith, isSet, readSettings, type Settings } from '../../settings/settings.js';
import { thisProcess } from '../context/command-process.js';
import { CommandFailure } from '../context/exit.js';
import { untilStopped } from '../context/stop-signals.js';
import { withDatabase } from '../context/with-feed.js';

const examples = `
What is configured is used, the rest is embedded.

Examples:
  $ scanfeed demo
  The real service into an embedded PostgreSQL:
    $ export SCANFEED_BASE_URL=https://recognition.example/v1
    $ SCANFEED_API_KEY_FILE=key scanfeed demo
  The emulated service into your PostgreSQL:
    $ DATABASE_URL=postgres://me@localhost/invoices scanfeed demo`;

/** Data of the demo, under the checkout; git ignores it. */
const DIRECTORY = fileURLToPath(new URL('.scanfeed', PACKAGE_FOLDER));
const ADMIN_PORT = 9847;
const ANY_PORT = 0;
const SERVICE_PORT = 8899;
/** Listening on these, the loopback address included. */
const EVERY_ADDRESS: readonly string[] = ['0.0.0.0', '::'];
const POSTGRES_PORT = 54_320;
const SHUTDOWN_MS = 20_000;
/** The database and the service. */
const BOTH = 2;
const NOTE_EVERY_MS = 2_000;

/** `scanfeed demo`: the real daemon between an emulated service and an embedded PostgreSQL. */
export function register(program: Command): void {
  program
    .command('demo')
    .description(
      'Try scanfeed: run the daemon, with an embedded PostgreSQL and an emulated service where none is configured.',
    )
    .option('--directory <folder>', 'where the data is kept', DIRECTORY)
    .addHelpText('after', examples)
    .action(({ directory }: { directory: string }) => runDemo(resolve(directory)));
}

/** Something embedded: what it adds to the environment, what it prints, and how it ends. */
interface Embedded {
  readonly variables: Readonly<Record<string, string>>;
  readonly lines: readonly string[];
  stop(): Promise<void>;
}

async function runDemo(directory: string): Promise<void> {
  await untilStopped(async (signal) => {
    const embedded: Embedded[] = [];
    try {
      const admin = await adminDefaults();
      await prepareFolder(directory);
      if (!isSet(['DATABASE_URL', 'PGHOST'])) embedded.push(await embedPostgres(directory, signal));
      if (!isSet(['SCANFEED_BASE_URL'])) embedded.push(await embedService(directory));
      const variables = Object.assign(
        { SCANFEED_LOG_FORMAT: 'pretty' },
        admin,
        ...embedded.map((part) => part.variables),
      );
      const settings = readSettings(environmentWith(variables));
      if (embedded.length === BOTH) await adoptEmulator(settings);
      const daemon = startDaemon(settings, signal);
      await daemon.admin.settled;
      process.stdout.write(whereToLook(embedded, daemon));
      await Promise.all([showProgress(daemon.report, signal), daemon.stopped]);
    } finally {
      await Promise.all(embedded.map((part) => part.stop()));
    }
  }, SHUTDOWN_MS);
}

async function prepareFolder(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`nothing can be kept in ${directory} (${code}); choose another folder with --directory`);
  }
}

/** The emulator's port may be another one than last time, but it is the same service. */
async function adoptEmulator({ database: settings, feed, service }: Settings): Promise<void> {
  await migrateSchema(settings);
  await withDatabase(settings, async ({ feeds }) => {
    const stored = await feeds.find(feed.name);
    if (stored === undefined || stored.baseUrl === service.baseUrl) return;
    await feeds.adopt(feed.name, { from: stored.baseUrl, baseUrl: service.baseUrl });
  });
}

/** Logs of the daemon reach the terminal only where something is wrong: the line of progress says the rest. */
function startDaemon(settings: Settings, signal: AbortSignal): Daemon {
  const overProgress = process.stdout.isTTY ? '\r\x1b[K' : '';
  const logger = createLogger({
    level: 'error',
    format: settings.process.logFormat,
    colours: thisProcess.colours === true,
    feed: settings.feed.name,
    version: packageVersion(),
    destination: { write: (line) => void process.stdout.write(`${overProgress}${line}`) },
  });
  return runDaemon(settings, logger, signal);
}

async function embedPostgres(directory: string, signal: AbortSignal): Promise<Embedded> {
  const { startEmbeddedPostgres } = await import('../../demo/embedded-postgres/index.js');
  const postgres = await startEmbeddedPostgres({ directory, port: POSTGRES_PORT, signal });
  return {
    variables: { DATABASE_URL: postgres.url },
    lines: [
      `Embedded PostgreSQL ${postgres.cluster.version}; look into it with`,
      `  ${postgres.psql} -c 'SELECT count(*) FROM scanfeed.runs'`,
    ],
    stop: () => postgres.stop(),
  };
}

async function embedService(directory: string): Promise<Embedded> {
  const { emulator, noteRunning } = await startDemoService(
    join(directory, 'demo-service.json'),
    await findFreePort(SERVICE_PORT),
  );
  await noteRunning();
  const timer = setInterval(() => void noteRunning().catch(() => {}), NOTE_EVERY_MS);
  return {
    variables: { SCANFEED_BASE_URL: emulator.url, SCANFEED_API_KEY: emulator.apiKey },
    lines: [
      `Emulated service at ${emulator.url}, key ${emulator.apiKey}; its switches: ${emulator.controlUrl}/switches`,
    ],
    stop: async () => {
      clearInterval(timer);
      // Whoever has deleted the folder begins anew: nothing is to be kept then.
      await noteRunning().catch(() => {});
      await emulator.close();
    },
  };
}

/**
 * A demo is for one person on this machine, and must not fail because the usual port is taken. One that was asked for is
 * another matter: whoever looks there would see somebody else's page, or none.
 */
async function adminDefaults(): Promise<Record<string, string>> {
  const defaults = { SCANFEED_ADMIN_HOST: '127.0.0.1', SCANFEED_ADMIN_PORT: String(ADMIN_PORT) };
  const { host, port } = readSettings(environmentWith(defaults), { need: ['admin'] }).admin;
  if (await isPortFree(port, host)) return defaults;
  if (!isSet(['SCANFEED_ADMIN_PORT'])) {
    if (await isPortFree(ANY_PORT, host)) return { ...defaults, SCANFEED_ADMIN_PORT: String(ANY_PORT) };
    throw new CommandFailure(`nothing can listen on ${host}; set another SCANFEED_ADMIN_HOST, or none`);
  }
  throw new CommandFailure(
    `nothing can listen on port ${port} of ${host}, it is probably taken; set another SCANFEED_ADMIN_PORT, or none and a free one is found`,
  );
}

function whereToLook(embedded: readonly Embedded[], { admin }: Daemon): string {
  const address = admin.address();
  const served = address === null ? [] : [pagesAt(address)];
  return `${[...embedded.flatMap((part) => part.lines), ...served, 'Ctrl-C ends it; started again, it goes on where it was.'].join('\n')}\n\n`;
}

function pagesAt({ address, family, port }: AddressInfo): string {
  const instead = isSet(['SCANFEED_ADMIN_PORT']) || port === ADMIN_PORT ? '' : ` (port ${ADMIN_PORT} is taken)`;
  const url = `http://${hostOf(address, family)}:${port}`;
  return `Status page ${url}/${instead}, metrics ${url}/metrics`;
}

/** As it stands in a URL of this machine. */
function hostOf(address: string, family: string): string {
  if (EVERY_ADDRESS.includes(address)) return '127.0.0.1';
  return family === 'IPv6' ? `[${address}]` : address;
}
