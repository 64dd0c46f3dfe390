import type { ServiceSettings } from '../../settings.js';
import { daemonGrantStatements } from '../../storage/daemon-role.js';
import { SchemaMismatch } from '../../storage/errors.js';
import { quoted, tablesOf } from '../../storage/schema.js';
import { readerRoleHelp } from '../open-database.js';
import type { DatabaseExam, ServerSeen } from './examine-database.js';
import { type Finding, failing, ok, skipped, type Told, warning, wordsOf } from './finding.js';
import { judgeClocks } from './judge-service.js';

const OLDEST = 15;
const NEWEST = 18;
/** Rights that are named one by one at most. */
const NAMED = 4;

const CHECKS = {
  login: 'database login',
  version: 'database version',
  encoding: 'database encoding',
  writable: 'database writable',
  clock: 'database clock',
  pooler: 'pooler',
  schema: 'schema',
  rights: 'rights',
  reader: 'reader role',
  feed: 'stored feed',
} as const;
const MIGRATIONS = 'migrations';

type OnLogin = NonNullable<DatabaseExam['onLogin']>;

/** From the way to the database to what is in it. Pure. */
export function judgeDatabase(exam: DatabaseExam | null, service: ServiceSettings | null): readonly Finding[] {
  if (exam === null) return Object.values(CHECKS).map((check) => skipped(check, 'needs the settings of the database'));
  const { server, migrator, onLogin } = exam;
  if ('error' in server || onLogin === null) {
    const { login, ...others } = CHECKS;
    const away = failing(login, wordsOf('error' in server ? server.error : null));
    const rest = Object.values(others).map((check) => skipped(check, 'needs a login'));
    return [away, ...rest, ...judgeMigrator(migrator)];
  }
  const seen = server.value;
  return [
    judgeLogin(exam, seen),
    judgeVersion(seen),
    judgeEncoding(seen),
    judgeWritable(seen),
    judgeClocks(CHECKS.clock, 'the database', seen.now.getTime() - seen.askedAt, 'no times of the two are compared'),
    judgePooler(exam, onLogin),
    judgeSchema(exam, onLogin, seen),
    judgeRights(exam, onLogin, seen),
    judgeReader(exam, onLogin),
    judgeFeed(onLogin, service),
    ...judgeMigrator(migrator),
  ];
}

function judgeLogin({ settings }: DatabaseExam, { role, database, tls, tookMs }: ServerSeen): Finding {
  const { host, port } = settings.connection;
  const at = host.startsWith('/') ? host : `${host}:${port}`;
  const isLocal = /^(\/|localhost$|127\.|::1$)/.test(host);
  const line = `${role} at ${at}, database ${database}, ${tls ?? 'no TLS'} (${Math.round(tookMs)} ms)`;
  return tls !== null || isLocal
    ? ok(CHECKS.login, line)
    : warning(CHECKS.login, `${line}: documents may cross the network as they are; sslmode=verify-full encrypts them`);
}

function judgeVersion({ major, version }: ServerSeen): Finding {
  const check = CHECKS.version;
  if (major < OLDEST) return failing(check, `PostgreSQL ${version} is too old: ${OLDEST} or newer is needed`);
  if (major > NEWEST)
    return warning(check, `PostgreSQL ${version} is newer than ${NEWEST}, the newest this release knows`);
  return ok(check, `PostgreSQL ${version}`);
}

function judgeEncoding({ encoding, database }: ServerSeen): Finding {
  const check = CHECKS.encoding;
  if (encoding === 'UTF8') return ok(check, encoding);
  return failing(
    check,
    `${database} has ${encoding}, in which not every text can be stored: use a database made with`,
    ["CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"],
  );
}

function judgeWritable({ standby, readOnly }: ServerSeen): Finding {
  const check = CHECKS.writable;
  if (standby)
    return failing(check, 'this server is a standby, which nobody writes to; let DATABASE_URL lead to the primary');
  if (readOnly)
    return failing(
      check,
      'transactions are read-only; take default_transaction_read_only from the role, the database or the server',
    );
  return ok(check, 'a primary that takes writes');
}

function judgePooler({ settings }: DatabaseExam, { pooler }: OnLogin): Finding {
  const check = CHECKS.pooler;
  if ('error' in pooler) return warning(check, `could not be looked for: ${wordsOf(pooler.error)}`);
  switch (pooler.value) {
    case 'none':
      return ok(check, 'none between');
    case 'transaction':
      return ok(check, 'one in transaction mode');
    case 'session':
      return ok(
        check,
        `one in session mode: it needs ${settings.poolSize} server connections for each process (SCANFEED_DATABASE_POOL)`,
      );
    case 'statement':
      return failing(check, 'one in statement mode, which refuses transactions; set pool_mode = transaction');
  }
}

function judgeSchema({ settings, migrator }: DatabaseExam, { schema }: OnLogin, seen: ServerSeen): Finding {
  const check = CHECKS.schema;
  if ('error' in schema) return failing(check, wordsOf(schema.error));
  const { version, missing, unfit } = schema.value;
  if (unfit === null) return ok(check, `${settings.schema} is at version ${version}, as this release needs it`);
  if (missing === 0) return failing(check, wordsOf(unfit));
  const what =
    version === 0
      ? `${settings.schema} is not there yet`
      : `${settings.schema} is at version ${version} and lacks ${missing}`;
  if (!settings.autoMigrate)
    return failing(check, `${what}: run \`scanfeed migrate\` (SCANFEED_AUTO_MIGRATE is false)`);
  const maker = migrator === null ? seen : 'value' in migrator ? migrator.value : null;
  if (maker === null) return skipped(check, `${what}; whether it can be made needs a login for migrations`);
  if (version > 0 || maker.createsSchemas)
    return ok(check, `${what}: \`scanfeed run\` or \`scanfeed migrate\` brings it up to date`);
  return failing(check, `${what}, and ${maker.role} may not make it: have this run by a role that may`, [
    `GRANT CREATE ON DATABASE ${quoted(maker.database)} TO ${quoted(maker.role)}`,
  ]);
}

/** A schema that may not be looked into is there: what is missing is a right. */
function isThere(schema: OnLogin['schema']): boolean {
  return 'value' in schema ? schema.value.version > 0 : !(schema.error instanceof SchemaMismatch);
}

function judgeRights({ settings }: DatabaseExam, { schema, missingRights }: OnLogin, { role }: ServerSeen): Finding {
  const check = CHECKS.rights;
  if (!isThere(schema)) return skipped(check, 'needs the schema');
  if ('error' in missingRights) return failing(check, wordsOf(missingRights.error));
  const missing = missingRights.value;
  if (missing.length === 0) return ok(check, `${role} may read and write ${settings.schema}`);
  const others = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : '';
  return failing(
    check,
    `${role} lacks ${missing.slice(0, NAMED).join(', ')}${others}: have this run by the owner of the schema`,
    daemonGrantStatements(tablesOf(settings.schema), role),
  );
}

function judgeReader({ settings }: DatabaseExam, { schema, reader }: OnLogin): Finding {
  const check = CHECKS.reader;
  if (!isThere(schema)) return skipped(check, 'needs the schema');
  if ('error' in reader) return warning(check, wordsOf(reader.error));
  const { exists, reads } = reader.value;
  const role = settings.readerRole;
  if (reads) return ok(check, `${role} may read every report`);
  const what = exists
    ? `${role} may not read every report`
    : `${role} does not exist, so that only owners read reports`;
  const statements = readerRoleHelp(settings)
    .split('\n')
    .filter(Boolean)
    .map((line) => line.replace(/;$/, ''));
  return warning(
    check,
    `${what}; scanfeed works all the same. Have this run by a role that may`,
    exists ? statements.filter((line) => !line.startsWith('CREATE ROLE')) : statements,
  );
}

function judgeFeed({ feed, schema }: OnLogin, service: ServiceSettings | null): Finding {
  const check = CHECKS.feed;
  if ('error' in feed) return failing(check, wordsOf(feed.error));
  if ('error' in schema) return skipped(check, 'needs the schema');
  if (feed.value === null) return ok(check, 'not started yet: `scanfeed run` starts it');
  const { name, baseUrl, leader } = feed.value;
  if (service !== null && baseUrl !== service.baseUrl) {
    return failing(
      check,
      `${name} belongs to ${baseUrl}, and SCANFEED_BASE_URL is ${service.baseUrl}: if the service has moved, run \`scanfeed adopt\``,
    );
  }
  return leader === null
    ? warning(check, `${name} is led by no process: \`scanfeed run\` goes on with it`)
    : ok(check, `${name} is led by ${leader}`);
}

function judgeMigrator(migrator: Told<ServerSeen> | null): readonly Finding[] {
  if (migrator === null) return [];
  if ('error' in migrator) return [failing(MIGRATIONS, `${wordsOf(migrator.error)} (SCANFEED_MIGRATION_DATABASE_URL)`)];
  const { role, standby, readOnly } = migrator.value;
  if (standby || readOnly)
    return [failing(MIGRATIONS, 'SCANFEED_MIGRATION_DATABASE_URL leads to where nothing can be written')];
  return [ok(MIGRATIONS, `by ${role} (SCANFEED_MIGRATION_DATABASE_URL)`)];
}
