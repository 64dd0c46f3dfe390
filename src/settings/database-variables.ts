import { databaseHost, databaseUrl } from './database-url.js';
import { flag, identifier, integer, oneOf, text } from './kinds.js';
import { retention } from './retention.js';
import { defaulted, filePath, optional, words } from './variable.js';

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
  pgHost: optional(
    ['database', 'PGHOST'],
    databaseHost,
    'host, or the folder of a Unix socket; like all `PG*` variables it counts where the address does not say it',
  ),
  pgPort: optional(['database', 'PGPORT'], integer(1, 65_535), 'port', { defaultText: '`5432`' }),
  pgUser: optional(['database', 'PGUSER'], words, 'role'),
  pgPassword: optional(
    ['database', 'PGPASSWORD'],
    text('text without NUL', /^[^\0]+$/),
    'password; its file is read again for every connection',
    { secret: true },
  ),
  pgDatabase: optional(['database', 'PGDATABASE'], words, 'database', { defaultText: 'as the role' }),
  pgSslMode: optional(
    ['database', 'PGSSLMODE'],
    words,
    '`disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`',
    { defaultText: '`prefer`' },
  ),
  pgSslRootCert: optional(
    ['database', 'PGSSLROOTCERT'],
    filePath,
    "authorities (PEM) that the server's certificate must come from, or `system` for those Node.js trusts",
    { defaultText: '`~/.postgresql/root.crt`, if there' },
  ),
  pgSslCert: optional(['database', 'PGSSLCERT'], filePath, 'client certificate (PEM)'),
  pgSslKey: optional(['database', 'PGSSLKEY'], filePath, 'key of the client certificate (PEM)'),
  pgSslNegotiation: optional(['database', 'PGSSLNEGOTIATION'], words, '`postgres` or `direct`', {
    defaultText: '`postgres`',
  }),
} as const;
