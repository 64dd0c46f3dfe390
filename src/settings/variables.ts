import { databaseUrl } from './database-url.js';
import {
  apiKey,
  baseUrl,
  duration,
  durationOrOff,
  feedStart,
  flag,
  identifier,
  integer,
  type Kind,
  oneOf,
  proxyUrl,
  rate,
  size,
  subset,
  text,
} from './kinds.js';

/** The parts of the settings; commands ask for those they need. */
export const GROUPS = ['service', 'feed', 'database', 'reconcile', 'pending', 'admin', 'process'] as const;
export type Group = (typeof GROUPS)[number];

/** One environment variable: the source of its parsing, of the text of mistakes and of docs/settings.md. */
export interface Variable<T = unknown> extends Kind<T> {
  readonly name: string;
  readonly group: Group;
  readonly meaning: string;
  /** Parsed like a given value; null where there is none. */
  readonly default: string | null;
  /** What stands for the default in the reference, where it is no value. */
  readonly defaultText?: string | undefined;
  readonly required: boolean;
  /** Never shown; may be given as NAME_FILE. */
  readonly secret: boolean;
}

interface Extra {
  readonly secret?: true;
  readonly defaultText?: string;
}

type Place = readonly [group: Group, name: string];

const required = <T>([group, name]: Place, kind: Kind<T>, meaning: string, extra: Extra = {}): Variable<T> => ({
  ...kind,
  secret: false,
  ...extra,
  group,
  name,
  meaning,
  default: null,
  required: true,
});

const optional = <T>([group, name]: Place, kind: Kind<T>, meaning: string, extra: Extra = {}): Variable<T | null> => ({
  ...kind,
  secret: false,
  ...extra,
  group,
  name,
  meaning,
  default: null,
  required: false,
});

const defaulted = <T>([group, name]: Place, kind: Kind<T>, value: string, meaning: string): Variable<T> => ({
  ...kind,
  secret: false,
  group,
  name,
  meaning,
  default: value,
  required: false,
});

const filePath = text('the path of a file', /^[^\0]+$/);
const words = text('text without control characters', /^[^\p{Cc}]+$/u);

/** Every variable, in the order of the reference. */
export const VARIABLES = {
  baseUrl: required(
    ['service', 'SCANFEED_BASE_URL'],
    baseUrl,
    'the service, with `/v1`; `https:`, or `http:` to a loopback address',
  ),
  allowHttp: defaulted(
    ['service', 'SCANFEED_ALLOW_HTTP'],
    flag,
    'false',
    'allow `http:` to other hosts (a mesh that encrypts by itself)',
  ),
  apiKey: required(['service', 'SCANFEED_API_KEY'], apiKey, 'bearer token; its file is read again when it changes', {
    secret: true,
  }),
  requestTimeout: defaulted(
    ['service', 'SCANFEED_REQUEST_TIMEOUT'],
    duration('100ms', '10m'),
    '30s',
    'one HTTP request, whole',
  ),
  requestsPerSecond: optional(
    ['service', 'SCANFEED_REQUESTS_PER_SECOND'],
    rate,
    'ceiling shared by all requests of the process',
  ),
  httpsProxy: optional(
    ['service', 'HTTPS_PROXY'],
    proxyUrl,
    'proxy to reach the service by; `https_proxy` goes before it',
    { secret: true },
  ),
  noProxy: optional(
    ['service', 'NO_PROXY'],
    words,
    'hosts reached without the proxy, separated by commas; `no_proxy` goes before it',
  ),
  extraCaCerts: optional(
    ['service', 'NODE_EXTRA_CA_CERTS'],
    filePath,
    'certificates (PEM) trusted besides the usual ones; read by Node.js itself',
  ),

  feed: defaulted(
    ['feed', 'SCANFEED_FEED'],
    text('1 to 63 letters, digits, dots, - and _, a letter or digit first', /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/),
    'default',
    'name of this feed: key of its cursor and lease, label of its metrics',
  ),
  environment: defaulted(['feed', 'SCANFEED_ENVIRONMENT'], oneOf('prod', 'test', 'all'), 'prod', 'which runs to store'),
  status: defaulted(
    ['feed', 'SCANFEED_STATUS'],
    subset('completed', 'failed'),
    'completed,failed',
    'both, so that a retry that fails replaces the result it replaces',
  ),
  documentType: optional(
    ['feed', 'SCANFEED_DOCUMENT_TYPE'],
    text('a slug of 1 to 255 characters', /^[^\p{Cc}\s]{1,255}$/u),
    'restrict to one slug',
  ),
  markdown: defaulted(['feed', 'SCANFEED_MARKDOWN'], flag, 'false', 'also store the recognized markdown'),
  start: defaulted(
    ['feed', 'SCANFEED_START'],
    feedStart,
    'beginning',
    'where a feed without a cursor starts; `live`: new runs at once, the history read behind them',
  ),
  pageLimit: defaulted(
    ['feed', 'SCANFEED_PAGE_LIMIT'],
    integer(1, 200),
    '200',
    'entries a page; halved by itself while pages exceed the memory budget (the halving is not in this release yet)',
  ),
  pollInterval: defaulted(
    ['feed', 'SCANFEED_POLL_INTERVAL'],
    duration('10ms', '1d'),
    '5s',
    'pause when the feed is at its end or its cursor is stuck; otherwise it polls on at once',
  ),
  resolveConcurrency: defaulted(
    ['feed', 'SCANFEED_RESOLVE_CONCURRENCY'],
    integer(1, 64),
    '8',
    'single-run requests at once',
  ),
  memoryBudget: defaulted(
    ['feed', 'SCANFEED_MEMORY_BUDGET'],
    size('1MiB', '16GiB'),
    '64MiB',
    'payload bytes held at once',
  ),
  leaseTtl: defaulted(
    ['feed', 'SCANFEED_LEASE_TTL'],
    duration('1s', '1h'),
    '30s',
    'how long a silent leader keeps the feed',
  ),
  history: defaulted(['feed', 'SCANFEED_HISTORY'], flag, 'true', 'keep superseded revisions in `run_history`'),

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
    "role that may read the reports; created where the daemon's own role may, else `migrate` prints the statements",
  ),
  autoMigrate: defaulted(['database', 'SCANFEED_AUTO_MIGRATE'], flag, 'true', 'apply migrations at start'),
  poolSize: defaulted(['database', 'SCANFEED_DATABASE_POOL'], integer(1, 100), '5', 'connections at most'),
  pgHost: optional(
    ['database', 'PGHOST'],
    words,
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

  reconcileInterval: defaulted(
    ['reconcile', 'SCANFEED_RECONCILE_INTERVAL'],
    durationOrOff('1s', '365d'),
    '1h',
    'pause between sweeps of the recent past',
  ),
  reconcileWindow: defaulted(
    ['reconcile', 'SCANFEED_RECONCILE_WINDOW'],
    duration('1s', '365d'),
    '2h',
    'how far back the sweep reads',
  ),
  reconcileFullInterval: defaulted(
    ['reconcile', 'SCANFEED_RECONCILE_FULL_INTERVAL'],
    durationOrOff('1m', '365d'),
    '7d',
    're-read of the whole feed, paced',
  ),

  pendingRetryInterval: defaulted(
    ['pending', 'SCANFEED_PENDING_RETRY_INTERVAL'],
    duration('100ms', '1h'),
    '30s',
    'first pause before a pending result is tried again; doubles up to 1h',
  ),

  adminHost: defaulted(
    ['admin', 'SCANFEED_ADMIN_HOST'],
    text('an IP address or a host name', /^[A-Za-z0-9.:%_-]+$/),
    '0.0.0.0',
    'address that metrics, health and the status page listen on',
  ),
  adminPort: defaulted(
    ['admin', 'SCANFEED_ADMIN_PORT'],
    integer(0, 65_535, ' (0: any free port)'),
    '9847',
    'its port; one that is taken is reported and tried again',
  ),

  shutdownTimeout: defaulted(
    ['process', 'SCANFEED_SHUTDOWN_TIMEOUT'],
    duration('0s', '10m'),
    '10s',
    'after SIGTERM, then it exits all the same',
  ),
  logLevel: defaulted(
    ['process', 'SCANFEED_LOG_LEVEL'],
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'JSON lines on stdout from this level on',
  ),
} as const;
