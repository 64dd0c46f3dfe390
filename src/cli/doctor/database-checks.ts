import { isIPv6 } from 'node:net';
import type { Clock } from '../../core/clock.js';
import { remedyFor } from '../../daemon/maintenance/report-orphaned.js';
import type { DatabaseSettings, SettingsFor } from '../../settings/settings.js';
import type { ClientOptions } from '../../storage/connection/client.js';
import { SchemaMismatch } from '../../storage/connection/errors.js';
import { type Database, LEASE_CONNECTIONS, openDatabase } from '../../storage/connection/pool.js';
import { findPoolerMode } from '../../storage/connection/pooler-mode.js';
import { readServerFacts, tryWrite, whyReadOnly } from '../../storage/connection/server-facts.js';
import { connectStore, type StoreConnection } from '../../storage/connection/store-connection.js';
import { AnotherService } from '../../storage/feeds/lease.js';
import { createFeeds } from '../../storage/operator/feeds.js';
import { findOrphaned } from '../../storage/operator/forget-feed.js';
import { readRecentErrors } from '../../storage/operator/recent-errors.js';
import { unknownTimeZone } from '../../storage/reporting/time-zone.js';
import { inspectSchema, requireSchema } from '../../storage/schema/check-schema.js';
import { daemonGrantStatements, findMissingRights } from '../../storage/schema/daemon-role.js';
import { findOutdatedPaths } from '../../storage/schema/migrate.js';
import { readMigrations } from '../../storage/schema/read-migrations.js';
import { readSurroundings } from '../../storage/schema/surroundings.js';
import { quoted } from '../../storage/tables/schema.js';
import { counted } from '../terminal/format.js';
import { describeOngoing } from '../terminal/show-status.js';
import {
  type Checks,
  type Finding,
  failing,
  messageOf,
  ok,
  type Result,
  runChecks,
  skipped,
  warning,
} from './finding.js';
import { checkReaderRole, checkReportIndexes, checkTypedViews, named } from './report-checks.js';

/** Deadline of each login and statement, milliseconds. */
const DEADLINE_MS = 10_000;
/** Oldest and newest version of PostgreSQL that this release supports. */
const OLDEST = 15;
const NEWEST = 18;

interface DatabaseContext {
  readonly settings: DatabaseSettings;
  readonly feedName: string;
  readonly serviceUrl: string;
  readonly connection: StoreConnection;
  readonly server: Server;
  /** The server as seen by the role for migrations; null if that is the same role. */
  readonly migrator: PromiseSettledResult<Server> | null;
  readonly schema: PromiseSettledResult<SchemaState>;
}

type Server = Awaited<ReturnType<typeof readServer>>;
type SchemaState = Awaited<ReturnType<typeof inspectSchema>>;

const LOGIN = 'database login';

const CHECKS: Checks<DatabaseContext> = {
  'database version': checkVersion,
  'database encoding': checkEncoding,
  'database writable': checkWritable,
  pooler: checkPooler,
  schema: checkSchema,
  privileges: ifSchemaExists(checkPrivileges),
  'reader role': ifSchemaExists(ifUpToDate(checkReaderRole)),
  'typed views': ifSchemaExists(ifUpToDate(checkTypedViews)),
  'report indexes': ifSchemaExists(ifUpToDate(checkReportIndexes)),
  surroundings: checkSurroundings,
  'stored feed': ifUpToDate(checkStoredFeed),
  'retired feeds': ifSchemaExists(ifUpToDate(checkRetiredFeeds)),
};

/** Checks the database from the login to its contents. Leaves nothing in it. */
export async function checkDatabase(
  { database: settings, feed, service }: SettingsFor<'database' | 'feed' | 'service'>,
  clock: Clock,
): Promise<readonly Finding[]> {
  const database = open(settings.connection);
  const direct = settings.migrationConnection === settings.connection ? null : open(settings.migrationConnection);
  try {
    const [[server], [migrator = null]] = await Promise.all([
      Promise.allSettled([readServer(database, clock)]),
      Promise.allSettled(direct === null ? [] : [readServer(direct, clock)]),
    ]);
    const migrations = migrator === null ? [] : [{ check: 'migrations', ...checkMigrator(migrator) }];
    if (server.status === 'rejected') {
      const login = { check: LOGIN, ...failing(messageOf(server.reason)) };
      const others = Object.keys(CHECKS).map((check) => ({ check, ...skipped('requires a login') }));
      return [login, ...others, ...migrations];
    }
    const connection = connectStore(database, settings.schema, settings.homeSchema);
    const [schema] = await Promise.allSettled([readMigrations().then((known) => inspectSchema(connection, known))]);
    const findings = await runChecks(CHECKS, {
      ...{ settings, connection, server: server.value, migrator, schema },
      feedName: feed.name,
      serviceUrl: service.baseUrl,
    });
    return [{ check: LOGIN, ...checkLogin(settings, server.value) }, ...findings, ...migrations];
  } finally {
    await Promise.all([database.close(), direct?.close()]);
  }
}

function open(connection: ClientOptions): Database {
  return openDatabase({
    connection,
    maxConnections: 1,
    statementDeadlineMs: DEADLINE_MS,
    connectDeadlineMs: DEADLINE_MS,
  });
}

async function readServer(database: Database, clock: Clock) {
  const begun = clock.monotonic();
  const facts = await readServerFacts(database.sql);
  return { ...facts, tookMs: clock.monotonic() - begun };
}

function checkLogin({ connection: { host, port } }: DatabaseSettings, { role, database, tls, tookMs }: Server): Result {
  const at = host.startsWith('/') ? host : `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const isLocal = /^(\/|localhost$|127\.|::1$)/.test(host);
  const line = `${role} at ${at}, database ${database}, ${tls ?? 'no TLS'} (${Math.round(tookMs)} ms)`;
  return tls !== null || isLocal
    ? ok(line)
    : warning(`${line}: documents may cross the network unencrypted; sslmode=verify-full encrypts them`);
}

function checkVersion({ server: { major, version } }: DatabaseContext): Result {
  if (major < OLDEST) return failing(`PostgreSQL ${version} is too old; ${OLDEST} or newer is required`);
  if (major > NEWEST)
    return warning(`PostgreSQL ${version} is newer than ${NEWEST}, the newest version that this release supports`);
  return ok(`PostgreSQL ${version}`);
}

function checkEncoding({ server: { encoding, database } }: DatabaseContext): Result {
  if (encoding === 'UTF8') return ok(encoding);
  return failing(`${database} uses ${encoding}, which cannot store all text; use a database created with`, [
    "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
  ]);
}

async function checkWritable({ server, connection }: DatabaseContext): Promise<Result> {
  const reason = whyReadOnly(server);
  if (reason !== null) return failing(reason);
  await tryWrite(connection);
  return ok('the server is a primary and accepts writes');
}

async function checkPooler({ settings }: DatabaseContext): Promise<Result> {
  const [mode] = await Promise.allSettled([findPoolerMode(settings.connection, DEADLINE_MS)]);
  if (mode.status === 'rejected') return warning(`could not be determined: ${messageOf(mode.reason)}`);
  switch (mode.value) {
    case 'none':
      return ok('no pooler');
    case 'transaction':
      return ok('transaction mode');
    case 'session':
      return ok(
        `session mode: requires ${settings.poolSize + LEASE_CONNECTIONS} server connections for each process (SCANFEED_DATABASE_POOL, and ${LEASE_CONNECTIONS} for leases)`,
      );
    case 'statement':
      return failing('statement mode does not support transactions; set pool_mode = transaction');
  }
}

async function checkSchema({ settings, connection, server, migrator, schema }: DatabaseContext): Promise<Result> {
  if (schema.status === 'rejected') throw schema.reason;
  const { version, missing } = schema.value;
  if (missing.length === 0) {
    const paths = await findOutdatedPaths(connection);
    if (paths.length > 0)
      return failing(
        `${settings.schema} was renamed, but its functions search the former name; run \`scanfeed migrate\``,
      );
    await requireSchema(connection, await readMigrations());
    return ok(`${settings.schema} is at version ${version}, which this release requires`);
  }
  const state =
    version === 0
      ? `${settings.schema} does not exist yet`
      : `${settings.schema} is at version ${version}; ${counted(missing.length, 'migration is', 'migrations are')} missing`;
  if (!settings.autoMigrate) return failing(`${state}: run \`scanfeed migrate\` (SCANFEED_AUTO_MIGRATE is false)`);
  if (migrator?.status === 'rejected') return skipped(`${state}; requires a login for migrations`);
  const { role, database, createsSchemas } = migrator?.value ?? server;
  if (version > 0 || createsSchemas)
    return ok(`${state}: \`scanfeed run\` or \`scanfeed migrate\` brings it up to date`);
  return failing(`${state}, and ${role} lacks the privilege to create it; run this as a database administrator`, [
    `GRANT CREATE ON DATABASE ${quoted(database)} TO ${quoted(role)}`,
  ]);
}

/** Returns whether the schema exists. If it cannot be read, only a privilege is missing. */
function schemaExists({ schema }: DatabaseContext): boolean {
  return schema.status === 'fulfilled' ? schema.value.version > 0 : !(schema.reason instanceof SchemaMismatch);
}

function ifSchemaExists(check: Checks<DatabaseContext>[string]): Checks<DatabaseContext>[string] {
  return (context) => (schemaExists(context) ? check(context) : skipped('requires the schema'));
}

/** Skips a check that reads tables and columns of this release while migrations are missing. */
function ifUpToDate(check: Checks<DatabaseContext>[string]): Checks<DatabaseContext>[string] {
  return (context) => {
    const { version, missing } =
      context.schema.status === 'fulfilled' ? context.schema.value : { version: 0, missing: [] };
    return version > 0 && missing.length > 0 ? skipped('requires the missing migrations') : check(context);
  };
}

async function checkPrivileges({ connection, server, settings }: DatabaseContext): Promise<Result> {
  const missing = await findMissingRights(connection);
  if (missing.length === 0) return ok(`${server.role} can read and write ${settings.schema}`);
  return failing(
    `${server.role} lacks ${named(missing)}; run this as the owner of the schema`,
    daemonGrantStatements(connection.tables, server.role),
  );
}

async function checkSurroundings(context: DatabaseContext): Promise<Result> {
  const { connection, settings, server } = context;
  const zone = settings.reportingTimeZone;
  const { refreshes, additions, knowsZone } = await readSurroundings(connection, zone);
  if (!knowsZone) return failing(unknownTimeZone(zone).message);
  if (refreshes.length > 0) {
    return warning(
      'the host sorts text in another order than when the indexes were built. Indexes of scanfeed do not depend on this order, but other indexes of this database may miss rows; run this as the owner of the database',
      [`REINDEX DATABASE ${quoted(server.database)}`, ...refreshes],
    );
  }
  if (additions.length === 0) return ok(`collations and time zone as expected, no foreign columns or constraints`);
  return warning(
    `added by someone else: ${additions.join(', ')}. A constraint may keep runs out, and a later release may add an object of the same name`,
  );
}

async function checkStoredFeed(context: DatabaseContext): Promise<Result> {
  const { server, schema, connection, feedName, serviceUrl } = context;
  if (schema.status === 'rejected') return skipped('requires the schema');
  const feed = schema.value.version > 0 ? await createFeeds(connection).find(feedName) : undefined;
  if (feed === undefined) return ok('not started yet; `scanfeed run` starts it');
  const { name, baseUrl, leader } = feed;
  if (baseUrl !== serviceUrl) return failing(new AnotherService({ name, baseUrl: serviceUrl }, baseUrl).message);
  const errors = (await readRecentErrors(connection, name)).filter(({ ongoing }) => ongoing);
  const described = errors.map((error) => describeOngoing(error, server.now.getTime()));
  if (described.length > 0) return failing(`${name} fails: ${described.join('; ')}`);
  if (leader !== null) return ok(`${name} is led by ${leader}`);
  // No process can take the feed there.
  if (whyReadOnly(server) !== null) return skipped('requires a database that accepts writes');
  return warning(`no process leads ${name}; start \`scanfeed run\``);
}

async function checkRetiredFeeds({ connection, feedName }: DatabaseContext): Promise<Result> {
  const orphaned = (await findOrphaned(connection)).filter(({ feed }) => feed !== feedName);
  if (orphaned.length === 0) return ok('no retired feed has pending results or open entries');
  const found = orphaned.map(
    ({ feed, pendingResults, openEntries }) =>
      `${feed} has ${counted(pendingResults, 'pending result', 'pending results')} and ${counted(openEntries, 'open entry', 'open entries')} in quarantine, and ${remedyFor(feed)}`,
  );
  return warning(found.join('; '));
}

function checkMigrator(migrator: PromiseSettledResult<Server>): Result {
  if (migrator.status === 'rejected') return failing(`${messageOf(migrator.reason)} (SCANFEED_MIGRATION_DATABASE_URL)`);
  const { role, standby, readOnly } = migrator.value;
  if (standby || readOnly) return failing('SCANFEED_MIGRATION_DATABASE_URL points to a server that accepts no writes');
  return ok(`run as ${role} (SCANFEED_MIGRATION_DATABASE_URL)`);
}
