import { databaseUrl, PARAMETERS } from './database-url.js';
import { flag, identifier, integer, oneOf, timeZone } from './kinds.js';
import { retention } from './retention.js';
import { defaulted, optional } from './variable.js';

/** URLs of the connections to PostgreSQL. */
export const URL_VARIABLES = {
  databaseUrl: optional(
    'DATABASE_URL',
    databaseUrl,
    'PostgreSQL 15 to 18; `sslmode`, `sslrootcert` and similar parameters work as in libpq',
    {
      secret: true,
      defaultText: 'required, or the `PG*` variables',
    },
  ),
  migrationUrl: optional('SCANFEED_MIGRATION_DATABASE_URL', databaseUrl, 'a direct connection for migrations', {
    secret: true,
    defaultText: '`DATABASE_URL`',
  }),
} as const;

/** Settings of the stored data. */
export const STORE_VARIABLES = {
  schema: defaulted(
    'SCANFEED_DATABASE_SCHEMA',
    identifier(53, 'information_schema'),
    'scanfeed',
    "schema of the tables; processes also find each other there. The reports' schema is this name with `_reporting`",
  ),
  readerRole: optional(
    'SCANFEED_READER_ROLE',
    identifier(63, 'public', 'none'),
    'role that can read the reports, a different one for each schema and database; created automatically if the role that migrates has the privilege, otherwise `doctor` and `migrate` print the statements',
    { defaultText: 'none: only owners can read the reports' },
  ),
  typedViews: defaulted(
    'SCANFEED_TYPED_VIEWS',
    oneOf('auto', 'off'),
    'auto',
    '`auto`: the daemon maintains a typed view of each document type; `off`: only `scanfeed views refresh` does',
  ),
  reportingTimeZone: defaulted(
    'SCANFEED_REPORTING_TIME_ZONE',
    timeZone,
    'UTC',
    'time zone of the days in `daily_statistics`; must be the same for all daemons of a schema, since each sets it at its start',
  ),
  retention: defaulted(
    'SCANFEED_RETENTION_DAYS',
    retention,
    'off',
    'age in days at which runs, superseded revisions and the content of quarantined entries are deleted; older runs are not stored',
  ),
  autoMigrate: defaulted('SCANFEED_AUTO_MIGRATE', flag, 'true', 'apply migrations at start'),
  poolSize: defaulted(
    'SCANFEED_DATABASE_POOL',
    integer(1, 100),
    '5',
    'maximum number of connections; leases use up to three more, and migrations two',
  ),
} as const;

/** Fallbacks for what the URL does not specify, by the names of the connection parameters. */
export const PG_VARIABLES = {
  host: optional('PGHOST', PARAMETERS.host, 'host; like all `PG*` variables, used if the URL does not specify it'),
  port: optional('PGPORT', PARAMETERS.port, 'port', { defaultText: '`5432`' }),
  user: optional('PGUSER', PARAMETERS.user, 'role'),
  password: optional('PGPASSWORD', PARAMETERS.password, 'password; its file is read for every new connection', {
    secret: true,
  }),
  dbname: optional('PGDATABASE', PARAMETERS.dbname, 'database', { defaultText: 'same as the role' }),
  sslmode: optional('PGSSLMODE', PARAMETERS.sslmode, 'use of TLS', { defaultText: '`prefer`' }),
  sslrootcert: optional(
    'PGSSLROOTCERT',
    PARAMETERS.sslrootcert,
    "CA certificates (PEM) that the server's certificate is checked against, or `system` for the CAs that Node.js trusts, which makes `verify-full` the default of `PGSSLMODE`",
    { defaultText: '`~/.postgresql/root.crt`, if it exists' },
  ),
  sslcert: optional('PGSSLCERT', PARAMETERS.sslcert, 'client certificate (PEM)'),
  sslkey: optional('PGSSLKEY', PARAMETERS.sslkey, 'key of the client certificate (PEM)'),
} as const;
