import type { DatabaseSettings, FeedSettings } from '../../settings.js';
import { findMissingRights } from '../../storage/daemon-role.js';
import { createFeeds } from '../../storage/feeds.js';
import { inspectSchema, readMigrations, requireSchema } from '../../storage/migrate.js';
import { type Database, openDatabase } from '../../storage/pool.js';
import { findPoolerMode } from '../../storage/pooler-mode.js';
import { inspectReaderRole } from '../../storage/reporting/reader-role.js';
import { readServerFacts } from '../../storage/server-facts.js';
import { connectStore, type StoreConnection } from '../../storage/store-connection.js';
import type { Clock } from '../../sync/ports.js';
import { told } from './finding.js';

const DEADLINE_MS = 10_000;

/** What was seen of the database. What needs a login is null without one. */
export type DatabaseExam = Awaited<ReturnType<typeof examineDatabase>>;
/** What was seen of a server over one connection. */
export type ServerSeen = Awaited<ReturnType<typeof seeServer>>;

/** Looks at the database; nothing is written. */
export async function examineDatabase(
  settings: DatabaseSettings,
  feed: Pick<FeedSettings, 'name'> | null,
  clock: Pick<Clock, 'now' | 'monotonic'>,
) {
  const { connection, migrationConnection } = settings;
  const open = (to: typeof connection) =>
    openDatabase({
      connection: to,
      maxConnections: 1,
      statementDeadlineMs: DEADLINE_MS,
      connectDeadlineMs: DEADLINE_MS,
    });
  const database = open(connection);
  const direct = migrationConnection === connection ? null : open(migrationConnection);
  try {
    const [server, migrator] = await Promise.all([
      told(seeServer(database, clock)),
      direct === null ? null : told(seeServer(direct, clock)),
    ]);
    const onLogin = 'error' in server ? null : await examineContents(settings, feed, database);
    return { settings, server, migrator, onLogin };
  } finally {
    await Promise.all([database.close(), direct?.close()]);
  }
}

async function seeServer(database: Database, clock: Pick<Clock, 'now' | 'monotonic'>) {
  const begun = clock.monotonic();
  await readServerFacts(database.sql); // the login takes its time
  const [tookMs, sentAt] = [clock.monotonic() - begun, clock.now()];
  const facts = await readServerFacts(database.sql);
  // The middle between asking and answer, by the wall clock of this machine.
  return { ...facts, tookMs, askedAt: (sentAt + clock.now()) / 2 };
}

async function examineContents(
  settings: DatabaseSettings,
  feed: Pick<FeedSettings, 'name'> | null,
  database: Database,
) {
  const connection = connectStore(database, settings.schema);
  const schema = await told(seeSchema(connection));
  const exists = 'value' in schema && schema.value.version > 0;
  return {
    schema,
    pooler: await told(findPoolerMode(settings.connection, DEADLINE_MS)),
    missingRights: await told(findMissingRights(connection)),
    reader: await told(inspectReaderRole(connection, settings.readerRole)),
    feed: exists && feed !== null ? await told(createFeeds(connection).find(feed.name)) : { value: undefined },
  };
}

async function seeSchema(connection: StoreConnection) {
  const known = await readMigrations();
  const { version, missing } = await inspectSchema(connection, known);
  const required = await told(requireSchema(connection, known));
  // What keeps this release from working on it, with the remedy.
  return { version, missing: missing.length, unfit: 'error' in required ? required.error : null };
}
