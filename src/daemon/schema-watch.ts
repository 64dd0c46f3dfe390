import type { Readiness } from '../observability/admin/readiness.js';
import { describeError } from '../observability/log/describe-error.js';
import type { Logger } from '../observability/log/logger.js';
import type { DatabaseSettings } from '../settings/settings.js';
import { SchemaMismatch } from '../storage/connection/errors.js';
import type { Database } from '../storage/connection/pool.js';
import { type Migration, readMigrations } from '../storage/schema/migrate.js';
import type { FeedStore } from '../sync/ports/index.js';
import { checkSchema, prepareReaderRole, prepareSchema } from './prepare-schema.js';

/** Whether this release can work on the schema. A newer release may change it at any time, beside a running daemon. */
export interface SchemaWatch {
  /** Migrates where that is wanted. Rejects while the schema cannot be worked on, and as soon as the signal aborts. */
  ready(signal: AbortSignal): Promise<void>;
  /** The store, whose lease ends when the schema has become one that this release must not write to. */
  guard(store: FeedStore): FeedStore;
  /** Settles when what is done beside the feed is over: soon, once the watch's signal has aborted. Never rejects. */
  over(): Promise<void>;
}

/** @param stop ends what is done beside the feed */
export function watchSchema(
  settings: DatabaseSettings,
  database: Database,
  readiness: Readiness,
  logger: Logger,
  stop: AbortSignal,
): SchemaWatch {
  readiness.waitingFor('the database schema was not seen to be current yet');
  let migrations: readonly Migration[] | undefined;
  // Once: the files of another release may be put in their place while this one runs.
  const known = async () => {
    migrations ??= await readMigrations();
    return migrations;
  };
  // Once a process, and beside the feed: reports can wait for a slow database, or for a person who gives the right.
  let reader: Promise<void> | undefined;
  const prepareReader = async () => {
    if (!settings.autoMigrate) return;
    try {
      if (await prepareReaderRole(settings, stop)) return;
      logger.warn(
        'the role for readers of the reports lacks rights, and this role may not give them: see `scanfeed migrate`',
        { role: settings.readerRole },
      );
    } catch (error) {
      if (!stop.aborted) logger.warn('the role for readers of the reports was not looked after', { error });
    }
  };
  const prepare = async (signal: AbortSignal) => {
    try {
      for (const name of await prepareSchema(settings, database, await known(), signal)) {
        logger.info('applied a migration', { migration: name });
      }
    } catch (error) {
      readiness.waitingFor(describeError(error).message);
      throw error;
    }
    readiness.ready();
    reader ??= prepareReader();
  };
  const isUsable = async () => {
    try {
      await checkSchema(settings, database, await known());
      return true;
    } catch (error) {
      if (error instanceof SchemaMismatch) return false;
      throw error;
    }
  };
  return {
    over: async () => reader,
    ready: (signal) => unlessAborted(prepare(signal), signal),
    guard: (store) => ({
      ...store,
      // Whoever holds the feed comes by here well inside every lease time; without it, the schema is waited for anew.
      renewLease: async (lease, ttlMs) => (await isUsable()) && store.renewLease(lease, ttlMs),
    }),
  };
}

/** Rejects at once when the signal aborts; what the work comes to then is of no interest. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
