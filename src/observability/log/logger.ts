import { type DestinationStream, type Level, pino, stdTimeFunctions } from 'pino';
import { describeError } from './describe-error.js';

/** Writes one line per call. `fields.error` can be any error; the logger selects the parts that are safe to log. */
export type Logger = Readonly<Record<Level, (message: string, fields?: LogFields) => void>>;

/** Names, numbers and times; never keys, passwords, cursors or document content. */
export type LogFields = Readonly<Record<string, unknown>> & { readonly error?: unknown };

export interface ProcessLogger extends Logger {
  /** Returns a logger whose lines have these fields too. Its level is the one of the process. */
  with(fields: LogFields): Logger;
  /** Switches between the configured level and `debug`, or `trace` if the configured level is `debug`. Logs the new level. */
  toggleDebug(): void;
}

export interface LoggerOptions {
  readonly level: Level | 'silent';
  readonly version: string;
  /** Standard output by default, written synchronously so that no line is lost when the process ends. */
  readonly destination?: DestinationStream | undefined;
}

/** Keys that are redacted as a second safeguard. No caller should pass any of them. */
const SECRET_KEYS = [
  'apiKey',
  'api_key',
  'authorization',
  'Authorization',
  'cookie',
  'password',
  'PGPASSWORD',
  'token',
  'secret',
  'connectionString',
  'databaseUrl',
  'DATABASE_URL',
  'SCANFEED_API_KEY',
  'SCANFEED_MIGRATION_DATABASE_URL',
  'data',
  'markdown',
  'payload',
  'rawOcrResult',
] as const;

/** Maximum size of buffered lines while the output is blocked, bytes. Further lines are dropped and counted. */
const BUFFER_BYTES = 1024 * 1024;

/** Pause before blocked output is tried again, milliseconds. */
const RETRY_MS = 100;

const DROPPED = 'dropped log lines: output was blocked';

/**
 * Opens standard output. A full disk or a closed reader does not end the process, and a reader that has stopped reading a pipe
 * does not block it: `process.stdout` makes a pipe non-blocking.
 * @param onDropped called with the number of dropped lines once the output is writable again
 */
function standardOutput(onDropped: (lines: number) => void): DestinationStream {
  // `minLength`: 0 would make `flush` do nothing.
  const { fd } = process.stdout;
  // By default EAGAIN is retried until it succeeds, which would stop everything else.
  const options = { sync: true, minLength: 1, maxLength: BUFFER_BYTES, retryEAGAIN: () => false };
  const output = pino.destination({ dest: fd, ...options });
  let retry: NodeJS.Timeout | undefined;
  output.on('error', () => {
    clearTimeout(retry);
    retry = setTimeout(() => output.flush(), RETRY_MS).unref();
  });
  let dropped = 0;
  output.on('drop', () => {
    dropped += 1;
    if (dropped === 1) {
      output.once('drain', () => {
        const lines = dropped;
        dropped = 0;
        onDropped(lines);
      });
    }
    // A dropped line triggers no write, so without this call the buffer would never drain.
    output.flush();
  });
  return output;
}

export function createLogger(options: LoggerOptions): ProcessLogger {
  const { level, version } = options;
  const output = options.destination ?? standardOutput((lines) => writer.warn({ lines }, DROPPED));
  const writer = pino(
    {
      level,
      base: { name: 'scanfeed', version },
      timestamp: stdTimeFunctions.isoTime,
      messageKey: 'message',
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: (error: unknown) => describeError(error, { stack: writer.isLevelEnabled('debug') }) },
      redact: {
        paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
        censor: '[redacted]',
      },
    },
    output,
  );
  const linesWith = (bound: LogFields): Logger => {
    const at = (name: Level) => (message: string, fields?: LogFields) => writer[name]({ ...bound, ...fields }, message);
    return {
      trace: at('trace'),
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      fatal: at('fatal'),
    };
  };
  return {
    ...linesWith({}),
    with: linesWith,
    toggleDebug: () => {
      const more = level === 'debug' || level === 'trace' ? 'trace' : 'debug';
      writer.level = writer.level === level ? more : level;
      // At the level itself, so that the line is written whatever the level is.
      if (writer.level !== 'silent') writer[writer.level as Level]({ logLevel: writer.level }, 'log level changed');
    },
  };
}
