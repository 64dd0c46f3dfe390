import type { Command } from 'commander';
import { systemClock } from '../../core/clock.js';
import { packageVersion } from '../../core/package.js';
import { type FeedSource, onlyFeed, runDaemon } from '../../daemon/run-daemon.js';
import type { ProcessSettings } from '../../daemon/shared-parts.js';
import { createLogger, type Logger } from '../../observability/log/logger.js';
import type { PageTracer } from '../../observability/tracing/tracer.js';
import { feedsFilePath, readFeedsFile, readFeedsText, versionOf } from '../../settings/feeds-file.js';
import type { KeptValue } from '../../settings/reread.js';
import { readSettings } from '../../settings/settings.js';
import { GROUPS } from '../../settings/variables.js';
import { untilStopped } from '../context/stop-signals.js';

const examples = `
Settings come from the environment: see docs/settings.md.

Examples:
  $ export SCANFEED_BASE_URL=https://recognition.example/v1
  $ export SCANFEED_API_KEY_FILE=/run/secrets/recognition-key
  $ export DATABASE_URL=postgres://scanfeed@db.example/invoices
  $ scanfeed run
  With a log line for each page:
    $ SCANFEED_LOG_LEVEL=debug scanfeed run
  With readable log lines in a terminal:
    $ scanfeed run | npx pino-pretty --messageKey message --singleLine`;

/** `scanfeed run`: runs the daemon. Exits with 0 on SIGTERM and SIGINT; retries if the service or database is unavailable. */
export function register(program: Command): void {
  program
    .command('run')
    .description('Keep the database in step with the delivery feed, until SIGTERM or SIGINT.')
    .addHelpText('after', examples)
    .action(async () => {
      let onKept = (_: KeptValue) => {};
      const { settings, source } = await readAllSettings((kept) => onKept(kept));
      const logger = createLogger({
        level: settings.process.logLevel,
        version: packageVersion(),
      });
      onKept = (kept) => logger.warn('unusable file, last value kept', { ...kept, remedy: 'correct the file' });
      for (const warning of settings.warnings) logger.warn(warning);
      // Closing the terminal does not end the daemon. Changed key and password files are read again without a signal.
      process.on('SIGHUP', () => logger.info('SIGHUP ignored'));
      // A signal, since no client of the admin port is allowed to change anything.
      process.on('SIGUSR2', logger.toggleDebug);
      const tracer = await openTracer(settings, logger);
      const startedAt = systemClock.monotonic();
      await untilStopped(
        (signal) => runDaemon(settings, source, { logger, tracer, clock: systemClock }, signal).stopped,
        settings.process.shutdownTimeoutMs,
        (signal) => logger.info('stopping', { signal }),
      );
      logger.info('stopped', { seconds: Math.round((systemClock.monotonic() - startedAt) / 1000) });
    });
}

/** Opens the tracer if a collector is set; null otherwise. Its packages are loaded only then. */
async function openTracer({ process: { traces } }: ProcessSettings, logger: Logger): Promise<PageTracer | null> {
  if (traces === null) return null;
  const { createOtlpTracer } = await import('../../observability/tracing/otlp-tracer.js');
  return createOtlpTracer({ ...traces, version: packageVersion(), logger, clock: systemClock });
}

async function readAllSettings(onKept: (kept: KeptValue) => void): Promise<{
  readonly settings: ProcessSettings;
  readonly source: FeedSource;
}> {
  const path = feedsFilePath();
  if (path === null) {
    const settings = readSettings(undefined, { onKept });
    return { settings, source: onlyFeed(settings) };
  }
  // Each feed has a service of its own.
  const settings = readSettings(undefined, { need: GROUPS.filter((group) => group !== 'service'), onKept });
  const read = () => readFeedsFile(path, undefined, { clock: systemClock, onKept });
  const readText = () => readFeedsText(path);
  return { settings, source: { file: await read(), changes: { read, readText, versionOf } } };
}
