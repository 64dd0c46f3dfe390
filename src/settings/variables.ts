import { DATABASE_VARIABLES, PG_VARIABLES } from './database-variables.js';
import {
  apiKey,
  baseUrl,
  duration,
  durationOrOff,
  feedStart,
  flag,
  integer,
  oneOf,
  proxyUrl,
  rate,
  size,
  subset,
  text,
} from './kinds.js';
import { defaulted, filePath, optional, required, words } from './variable.js';

export { GROUPS, type Group, type Variable } from './variable.js';

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
    'entries a page; halved by itself while pages exceed 16 MiB or the memory budget',
  ),
  pollInterval: defaulted(
    ['feed', 'SCANFEED_POLL_INTERVAL'],
    duration('10ms', '1d'),
    '5s',
    'pause when the feed is at its end or its cursor is stuck, counted from the poll that saw it; otherwise it polls on at once',
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
    'payload bytes held at once: pages, pages read ahead and loaded results',
  ),
  leaseTtl: defaulted(
    ['feed', 'SCANFEED_LEASE_TTL'],
    duration('1s', '1h'),
    '10s',
    'how long a silent leader keeps the feed; another replica takes over within this and a third of it',
  ),
  history: defaulted(['feed', 'SCANFEED_HISTORY'], flag, 'true', 'keep superseded revisions in `run_history`'),

  ...DATABASE_VARIABLES,
  ...PG_VARIABLES,

  reconcileInterval: defaulted(
    ['reconcile', 'SCANFEED_RECONCILE_INTERVAL'],
    durationOrOff('1s', '365d'),
    '1h',
    'pause between recent passes',
  ),
  reconcileWindow: defaulted(
    ['reconcile', 'SCANFEED_RECONCILE_WINDOW'],
    duration('1s', '365d'),
    '2h',
    'how far back a recent pass reads',
  ),
  reconcileFullInterval: defaulted(
    ['reconcile', 'SCANFEED_RECONCILE_FULL_INTERVAL'],
    durationOrOff('1m', '365d'),
    '7d',
    'pause between full passes, which read the whole feed again, one page per second',
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
    'lines on stdout from this level on',
  ),
  logFormat: defaulted(
    ['process', 'SCANFEED_LOG_FORMAT'],
    oneOf('json', 'pretty'),
    'json',
    'JSON lines, or `pretty` ones for people at a terminal',
  ),
} as const;
