import { DATABASE_VARIABLES, PG_VARIABLES } from './database-variables.js';
import {
  apiKey,
  baseUrl,
  collectorUrl,
  duration,
  durationOrOff,
  feedStart,
  flag,
  integer,
  noProxy,
  oneOf,
  proxyUrl,
  rate,
  size,
  subset,
  text,
} from './kinds.js';
import { defaulted, filePath, optional, required } from './variable.js';

export { GROUPS, type Group, type Variable } from './variable.js';

/** Every variable, in the order of the reference. */
export const VARIABLES = {
  baseUrl: required(
    ['service', 'SCANFEED_BASE_URL'],
    baseUrl,
    'URL of the service, with `/v1`; `https:`, or `http:` to a loopback address',
  ),
  allowHttp: defaulted(
    ['service', 'SCANFEED_ALLOW_HTTP'],
    flag,
    'false',
    'allow `http:` to other hosts, for example in a service mesh that encrypts all traffic',
  ),
  apiKey: required(['service', 'SCANFEED_API_KEY'], apiKey, 'bearer token; its file is read again when it changes', {
    secret: true,
  }),
  requestTimeout: defaulted(
    ['service', 'SCANFEED_REQUEST_TIMEOUT'],
    duration('100ms', '10m'),
    '30s',
    'timeout of one HTTP request, from connecting to the last byte',
  ),
  requestsPerSecond: optional(
    ['service', 'SCANFEED_REQUESTS_PER_SECOND'],
    rate,
    'maximum rate of all requests of the process; each feed needs at least one request per poll interval; while polls wait, single runs get at most every fourth request',
  ),
  httpsProxy: optional(
    ['service', 'HTTPS_PROXY'],
    proxyUrl,
    'proxy for requests to the service; `https_proxy` takes precedence',
    { secret: true },
  ),
  noProxy: optional(
    ['service', 'NO_PROXY'],
    noProxy,
    'hosts to reach without the proxy, separated by commas; `no_proxy` takes precedence',
  ),
  extraCaCerts: optional(['service', 'NODE_EXTRA_CA_CERTS'], filePath, 'additional certificates (PEM) to trust'),

  feed: defaulted(
    ['feed', 'SCANFEED_FEED'],
    text(
      '1 to 63 letters, digits, dots, - and _, starting with a letter or digit',
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    ),
    'default',
    'name of this feed: key of its cursor and lease, label of its metrics',
  ),
  environment: defaulted(
    ['feed', 'SCANFEED_ENVIRONMENT'],
    oneOf('prod', 'test', 'all'),
    'prod',
    'environments whose runs are stored',
  ),
  status: defaulted(
    ['feed', 'SCANFEED_STATUS'],
    subset('completed', 'failed'),
    'completed,failed',
    'statuses whose runs are stored; by default both, so that a failed retry replaces the earlier result',
  ),
  documentType: optional(
    ['feed', 'SCANFEED_DOCUMENT_TYPE'],
    text('a slug of 1 to 255 characters', /^[^\p{Cc}\s]{1,255}$/u),
    'the only document type to store',
  ),
  markdown: defaulted(['feed', 'SCANFEED_MARKDOWN'], flag, 'false', 'also store the recognized markdown'),
  start: defaulted(
    ['feed', 'SCANFEED_START'],
    feedStart,
    'beginning',
    'where a feed without a cursor starts; `live`: new runs are stored at once, and the history is read in the background',
  ),
  pageLimit: defaulted(
    ['feed', 'SCANFEED_PAGE_LIMIT'],
    integer(1, 200),
    '200',
    'entries per page; halved automatically while pages exceed 16 MiB or the memory budget',
  ),
  pollInterval: defaulted(
    ['feed', 'SCANFEED_POLL_INTERVAL'],
    duration('10ms', '1d'),
    '5s',
    'pause at the end of the feed or while its cursor is stuck, counted from the last poll; otherwise the next page is requested at once',
  ),
  resolveConcurrency: defaulted(
    ['feed', 'SCANFEED_RESOLVE_CONCURRENCY'],
    integer(1, 64),
    '8',
    'maximum number of concurrent single-run requests of a feed, for its pages and again for its pending results',
  ),
  pendingRetryInterval: defaulted(
    ['feed', 'SCANFEED_PENDING_RETRY_INTERVAL'],
    duration('100ms', '1h'),
    '30s',
    'first pause before a pending result is retried; doubles up to 1h',
  ),
  memoryBudget: defaulted(
    ['feed', 'SCANFEED_MEMORY_BUDGET'],
    size('1MiB', '16GiB'),
    '64MiB',
    'maximum memory for payloads: pages, prefetched pages and loaded results',
  ),
  leaseTtl: defaulted(
    ['feed', 'SCANFEED_LEASE_TTL'],
    duration('1s', '1h'),
    '10s',
    'time after which the lease of an unresponsive process expires; others take over its feeds at most 2 s later',
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

  adminHost: defaulted(
    ['admin', 'SCANFEED_ADMIN_HOST'],
    text('an IP address or a host name', /^[A-Za-z0-9.:%_-]+$/),
    '::',
    'address on which metrics, health checks and the status page are served; by default every one, of IPv4 and IPv6',
  ),
  adminPort: defaulted(
    ['admin', 'SCANFEED_ADMIN_PORT'],
    integer(0, 65_535, ' (0: any free port)'),
    '9847',
    'port on which they are served; if it is in use, the error is reported and retried',
  ),

  feedsFile: optional(
    ['process', 'SCANFEED_FEEDS_FILE'],
    filePath,
    'list of the feeds of this process, in YAML or JSON; each overrides some of the variables',
  ),
  shutdownTimeout: defaulted(
    ['process', 'SCANFEED_SHUTDOWN_TIMEOUT'],
    duration('0s', '10m'),
    '10s',
    'time to finish after SIGTERM; then the process exits anyway',
  ),
  logLevel: defaulted(
    ['process', 'SCANFEED_LOG_LEVEL'],
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'minimum level of log lines on stdout',
  ),
  collectorUrl: optional(
    ['process', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
    collectorUrl,
    'OpenTelemetry collector that receives traces of the pages, over HTTP',
  ),
} as const;
