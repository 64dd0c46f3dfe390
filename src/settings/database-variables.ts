import { databaseUrl, PARAMETERS } from './database-url.js';
import { flag, identifier, integer, oneOf } from './kinds.js';
import { retention } from './retention.js';
import { defaulted, optional } from './variable.js';

/** How PostgreSQL is reached, and what is kept there. */
export const DATABASE_VARIABLES = {
  databaseUrl: optional(
    ['database', 'DATABASE_URL'],
    databaseUrl,
    'PostgreSQL 15 to 18; `sslmode`, `sslrootcert` and the like as libpq has them',
    {
      secret: true,
      defaultText: 'required, or the `PG*` variables',
    },
  ),
  migrationUrl: optional(
    ['database', 'SCANFEED_MIGRATION_DATABASE_URL'],
    databaseUrl,
    'a direct connection for migrations',
    {
      secret: true,
      defaultText: '`DATABASE_URL`',
    },
  ),
  schema: defaulted(
    ['database', 'SCANFEED_DATABASE_SCHEMA'],
    identifier(53, 'information_schema'),
    'scanfeed',
    "schema of the tables; the reports' schema is this name with `_reporting`",
  ),
  readerRole: defaulted(
    ['database', 'SCANFEED_READER_ROLE'],
    identifier(63, 'public', 'none'),
    'scanfeed_reader',
    "role that may read the reports; created where the daemon's own role may, else `doctor` prints the statements",
  ),
  typedViews: defaulted(
    ['database', 'SCANFEED_TYPED_VIEWS'],
    oneOf('auto', 'off'),
    'auto',
    'whether the daemon keeps a typed view of each document type (`scanfeed views refresh` does so at any time)',
  ),
  retention: defaulted(
    ['database', 'SCANFEED_RETENTION_DAYS'],
    retention,
    'off',
    'days after which what is stored is removed, counted from its delivery; what is older is not stored either',
  ),
  autoMigrate: defaulted(['database', 'SCANFEED_AUTO_MIGRATE'], flag, 'true', 'apply migrations at start'),
  poolSize: defaulted(['database', 'SCANFEED_DATABASE_POOL'], integer(1, 100), '5', 'connections at most'),
} as const;

/** What counts where the address does not say it, by the names of the connection parameters. */
export const PG_VARIABLES = {
  host: optional(
    ['database', 'PGHOST'],
    PARAMETERS.host,
    'host; like all `PG*` variables it counts where the address does not say it',
  ),
  port: optional(['database', 'PGPORT'], PARAMETERS.port, 'port', { defaultText: '`5432`' }),
  user: optional(['database', 'PGUSER'], PARAMETERS.user, 'role'),
  password: optional(
    ['database', 'PGPASSWORD'],
    PARAMETERS.password,
    'password; its file is read again for every connection',
    { secret: true },
  ),
  dbname: optional(['database', 'PGDATABASE'], PARAMETERS.dbname, 'database', { defaultText: 'as the role' }),
  sslmode: optional(['database', 'PGSSLMODE'], PARAMETERS.sslmode, 'use of TLS', { defaultText: '`prefer`' }),
  sslrootcert: optional(
    ['database', 'PGSSLROOTCERT'],
    PARAMETERS.sslrootcert,
    "authorities (PEM) that the server's certificate must come from, or `system` for those Node.js trusts",
    { defaultText: '`~/.postgresql/root.crt`, if there' },
  ),
  sslcert: optional(['database', 'PGSSLCERT'], PARAMETERS.sslcert, 'client certificate (PEM)'),
  sslkey: optional(['database', 'PGSSLKEY'], PARAMETERS.sslkey, 'key of the client certificate (PEM)'),
  sslnegotiation: optional(['database', 'PGSSLNEGOTIATION'], PARAMETERS.sslnegotiation, 'how TLS begins', {
    defaultText: '`postgres`',
  }),
} as const;
