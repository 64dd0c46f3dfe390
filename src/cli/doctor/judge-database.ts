import type { ServiceSettings } from '../../settings.js';
import { daemonGrantStatements } from '../../storage/daemon-role.js';
import { SchemaMismatch } from '../../storage/errors.js';
import { quoted, tablesOf } from '../../storage/schema.js';
import { readerRoleHelp } from '../open-database.js';
import type { DatabaseExam, ServerSeen } from './examine-database.js';
import {
  type Finding,
  failing,
  findingsOf,
  ok,
  skipped,
  type Told,
  type Verdict,
  warning,
  wordsOf,
} from './finding.js';
import { judgeClocks } from './judge-service.js';

const OLDEST = 15;
const NEWEST = 18;
/** Rights that are named one by one at most. */
const NAMED = 4;

/** What was seen over a login. */
type Seen = NonNullable<DatabaseExam['onLogin']> &
  Pick<DatabaseExam, 'settings' | 'migrator'> & {
    readonly server: ServerSeen;
    readonly service: ServiceSettings | null;
  };

const CHECKS: Readonly<Record<string, (seen: Seen) => Verdict>> = {
  'database login': judgeLogin,
  'database version': judgeVersion,
  'database encoding': judgeEncoding,
  'database writable': judgeWritable,
  'database clock': judgeClock,
  pooler: judgePooler,
  schema: judgeSchema,
  rights: judgeRights,
  'reader role': judgeReader,
  'stored feed': judgeFeed,
};

/** From the way to the database to what is in it. Pure. */
export function judgeDatabase(exam: DatabaseExam | null, service: ServiceSettings | null): readonly Finding[] {
  if (exam === null) return findingsOf(CHECKS, () => skipped('needs the settings of the database'));
  const { server, onLogin, ...more } = exam;
  const findings = findingsOf(CHECKS, (judge) => {
    if ('value' in server && onLogin !== null) return judge({ ...more, ...onLogin, server: server.value, service });
    return judge === judgeLogin ? failing(wordsOf('error' in server ? server.error : null)) : skipped('needs a login');
  });
  const { migrator } = exam;
  return migrator === null ? findings : [...findings, { check: 'migrations', ...judgeMigrator(migrator) }];
}

function judgeLogin({ settings, server: { role, database, tls, tookMs } }: Seen): Verdict {
  const { host, port } = settings.connection;
  const at = host.startsWith('/') ? host : `${host}:${port}`;
  const isLocal = /^(\/|localhost$|127\.|::1$)/.test(host);
  const line = `${role} at ${at}, database ${database}, ${tls ?? 'no TLS'} (${Math.round(tookMs)} ms)`;
  return tls !== null || isLocal
    ? ok(line)
    : warning(`${line}: documents may cross the network as they are; sslmode=verify-full encrypts them`);
}

function judgeVersion({ server: { major, version } }: Seen): Verdict {
  if (major < OLDEST) return failing(`PostgreSQL ${version} is too old: ${OLDEST} or newer is needed`);
  if (major > NEWEST) return warning(`PostgreSQL ${version} is newer than ${NEWEST}, the newest this release knows`);
  return ok(`PostgreSQL ${version}`);
}

function judgeEncoding({ server: { encoding, database } }: Seen): Verdict {
  if (encoding === 'UTF8') return ok(encoding);
  return failing(`${database} has ${encoding}, in which not every text can be stored: use a database made with`, [
    "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
  ]);
}

function judgeWritable({ server: { standby, readOnly } }: Seen): Verdict {
  if (standby) return failing('this server is a standby, which nobody writes to; let DATABASE_URL lead to the primary');
  if (readOnly)
    return failing(
      'transactions are read-only; take default_transaction_read_only from the role, the database or the server',
    );
  return ok('a primary that takes writes');
}

function judgeClock({ server }: Seen): Verdict {
  return judgeClocks('the database', server.now.getTime() - server.askedAt, 'no times of the two are compared');
}

function judgePooler({ settings, pooler }: Seen): Verdict {
  if ('error' in pooler) return warning(`could not be looked for: ${wordsOf(pooler.error)}`);
  switch (pooler.value) {
    case 'none':
      return ok('none between');
    case 'transaction':
      return ok('one in transaction mode');
    case 'session':
      return ok(
        `one in session mode: it needs ${settings.poolSize} server connections for each process (SCANFEED_DATABASE_POOL)`,
      );
    case 'statement':
      return failing('one in statement mode, which refuses transactions; set pool_mode = transaction');
  }
}

function judgeSchema({ settings, migrator, schema, server }: Seen): Verdict {
  if ('error' in schema) return failing(wordsOf(schema.error));
  const { version, missing, unfit } = schema.value;
  if (unfit === null) return ok(`${settings.schema} is at version ${version}, as this release needs it`);
  if (missing === 0) return failing(wordsOf(unfit));
  const what =
    version === 0
      ? `${settings.schema} is not there yet`
      : `${settings.schema} is at version ${version} and lacks ${missing}`;
  if (!settings.autoMigrate) return failing(`${what}: run \`scanfeed migrate\` (SCANFEED_AUTO_MIGRATE is false)`);
  const maker = migrator === null ? server : 'value' in migrator ? migrator.value : null;
  if (maker === null) return skipped(`${what}; whether it can be made needs a login for migrations`);
  if (version > 0 || maker.createsSchemas)
    return ok(`${what}: \`scanfeed run\` or \`scanfeed migrate\` brings it up to date`);
  return failing(`${what}, and ${maker.role} may not make it: have this run by a role that may`, [
    `GRANT CREATE ON DATABASE ${quoted(maker.database)} TO ${quoted(maker.role)}`,
  ]);
}

/** A schema that may not be looked into is there: what is missing is a right. */
function isThere(schema: Seen['schema']): boolean {
  return 'value' in schema ? schema.value.version > 0 : !(schema.error instanceof SchemaMismatch);
}

function judgeRights({ settings, schema, missingRights, server: { role } }: Seen): Verdict {
  if (!isThere(schema)) return skipped('needs the schema');
  if ('error' in missingRights) return failing(wordsOf(missingRights.error));
  const missing = missingRights.value;
  if (missing.length === 0) return ok(`${role} may read and write ${settings.schema}`);
  const others = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : '';
  return failing(
    `${role} lacks ${missing.slice(0, NAMED).join(', ')}${others}: have this run by the owner of the schema`,
    daemonGrantStatements(tablesOf(settings.schema), role),
  );
}

function judgeReader({ settings, schema, reader }: Seen): Verdict {
  if (!isThere(schema)) return skipped('needs the schema');
  if ('error' in reader) return warning(wordsOf(reader.error));
  const { exists, reads } = reader.value;
  const role = settings.readerRole;
  if (reads) return ok(`${role} may read every report`);
  const what = exists
    ? `${role} may not read every report`
    : `${role} does not exist, so that only owners read reports`;
  const statements = readerRoleHelp(settings)
    .split('\n')
    .filter(Boolean)
    .map((line) => line.replace(/;$/, ''));
  return warning(
    `${what}; scanfeed works all the same. Have this run by a role that may`,
    exists ? statements.filter((line) => !line.startsWith('CREATE ROLE')) : statements,
  );
}

function judgeFeed({ feed, schema, service }: Seen): Verdict {
  if ('error' in feed) return failing(wordsOf(feed.error));
  if ('error' in schema) return skipped('needs the schema');
  if (feed.value === undefined) return ok('not started yet: `scanfeed run` starts it');
  const { name, baseUrl, leader } = feed.value;
  if (service !== null && baseUrl !== service.baseUrl) {
    return failing(
      `${name} belongs to ${baseUrl}, and SCANFEED_BASE_URL is ${service.baseUrl}: if the service has moved, run \`scanfeed adopt\``,
    );
  }
  return leader === null
    ? warning(`${name} is led by no process: \`scanfeed run\` goes on with it`)
    : ok(`${name} is led by ${leader}`);
}

function judgeMigrator(migrator: Told<ServerSeen>): Verdict {
  if ('error' in migrator) return failing(`${wordsOf(migrator.error)} (SCANFEED_MIGRATION_DATABASE_URL)`);
  const { role, standby, readOnly } = migrator.value;
  if (standby || readOnly) return failing('SCANFEED_MIGRATION_DATABASE_URL leads to where nothing can be written');
  return ok(`by ${role} (SCANFEED_MIGRATION_DATABASE_URL)`);
}
