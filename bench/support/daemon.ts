import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { imageEnvironment, imageOptions } from '../../test/support/program/image-options.js';
import type { ServiceAddress } from '../service/protocol.js';
import type { BenchDatabase } from './postgres.js';
import type { Scope } from './scope.js';

/** The program as the image holds it, made by `npm run bundle`. */
export const PROGRAM = fileURLToPath(new URL('../../../program/main.js', import.meta.url));
const CHECK_INTERVAL_MS = 200;

export interface BenchDaemon {
  readonly pid: number;
  /** Milliseconds since 1970, just before the process was made. */
  readonly startedAt: number;
  /** When the end of the feed was reached first, by the database, whose clock is this machine's. Milliseconds since 1970. */
  reachesEnd(feed?: string): Promise<number>;
  /** Throws, with its last output, if it has ended although nobody stopped it. */
  assertRunning(): void;
  /** The URL of its admin server; needs the log level `info`. */
  adminUrl(): Promise<string>;
  stop(): Promise<void>;
  /** Kills it with SIGKILL; resolves when it has exited. */
  kill(): Promise<void>;
}

/**
 * Starts `scanfeed run` as the image does, with its default settings, but for these.
 * @param containerMib memory of the container, by default what one feed needs
 */
export function startDaemon(
  scope: Scope,
  service: ServiceAddress,
  database: BenchDatabase,
  settings: Readonly<Record<string, string>> = {},
  containerMib?: number,
): BenchDaemon {
  const { PATH = '', HOME = '' } = process.env;
  const env = {
    PATH,
    HOME,
    ...imageEnvironment(),
    SCANFEED_BASE_URL: service.url,
    SCANFEED_API_KEY: service.apiKey,
    DATABASE_URL: withDefaultSslMode(database.url),
    SCANFEED_ADMIN_HOST: '127.0.0.1',
    SCANFEED_ADMIN_PORT: '0',
    SCANFEED_LOG_LEVEL: 'warn',
    ...settings,
  };
  const startedAt = Date.now();
  const child = spawn(process.execPath, [...imageOptions(containerMib), PROGRAM, 'run'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let port: string | undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-10_000);
      port ??= /"port":(\d+),"message":"admin server is listening"/.exec(said)?.[1];
    });
  }
  const exited = once(child, 'exit');
  let stopping = false;
  const end = async (signal: NodeJS.Signals) => {
    stopping = true;
    child.kill(signal);
    await exited;
  };
  const assertRunning = () => {
    if ((child.exitCode ?? child.signalCode) !== null && !stopping)
      throw new Error(`the daemon has ended; it said\n${said}`);
  };
  const stop = () => end('SIGTERM');
  scope.defer(stop);
  return {
    pid: child.pid ?? 0,
    startedAt,
    stop,
    assertRunning,
    adminUrl: async () => {
      while (port === undefined) await sleep(CHECK_INTERVAL_MS);
      return `http://127.0.0.1:${port}`;
    },
    kill: () => end('SIGKILL'),
    reachesEnd: (feed = 'default') =>
      database.withClient(async (client) => {
        for (;;) {
          assertRunning();
          const at = await endReachedAt(client, feed);
          if (at !== null) return at;
          await sleep(CHECK_INTERVAL_MS);
        }
      }),
  };
}

/** Null: not yet, or there is no table yet. */
async function endReachedAt(client: pg.Client, feed: string): Promise<number | null> {
  try {
    const { rows } = await client.query<{ at: number | null }>(
      'SELECT extract(epoch FROM end_reached_at)::double precision * 1000 AS at FROM scanfeed.feeds WHERE name = $1',
      [feed],
    );
    return rows[0]?.at ?? null;
  } catch (error) {
    const undefinedTable = '42P01';
    if ((error as { code?: unknown }).code === undefinedTable) return null;
    throw error;
  }
}

/** As in the settings of most people: nothing is said about TLS. */
function withDefaultSslMode(url: string): string {
  const plain = new URL(url);
  plain.searchParams.delete('sslmode');
  return plain.href;
}
