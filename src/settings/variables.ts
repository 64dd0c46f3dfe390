import type { FeedFilters } from '../core/feed-filters.js';
import { PG_VARIABLES, STORE_VARIABLES, URL_VARIABLES } from './database-variables.js';
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
import { defaulted, filePath, optional, required, type Variable } from './variable.js';

export type { Variable } from './variable.js';

export const FILTER_VARIABLES = {
  environment: defaulted(
    'SCANFEED_ENVIRONMENT',
    oneOf('prod', 'test', 'all'),
    'prod',
    'environments whose runs are stored',
  ),
  status: defaulted(
    'SCANFEED_STATUS',
    subset('completed', 'failed'),
    'completed,failed',
    'statuses whose runs are stored; by default both, so that a failed retry replaces the earlier result',
  ),
  documentType: optional(
    'SCANFEED_DOCUMENT_TYPE',
    text('a slug of 1 to 255 characters', /^[^\p{Cc}\s]{1,255}$/u),
    'the only document type to store',
  ),
} as const satisfies { readonly [Name in keyof FeedFilters]: Variable<FeedFilters[Name]> };

export const FEED_VARIABLES = {
  name: defaulted(
    'SCANFEED_FEED',
    text(
      '1 to 63 letters, digits, dots, - and _, starting with a letter or digit',
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    ),
    'default',
    'name of this feed: key of its cursor and lease, label of its metrics',
  ),
  markdown: defaulted('SCANFEED_MARKDOWN', flag, 'false', 'also store the recognized markdown'),
  start: defaulted(
    'SCANFEED_START',
    feedStart,
    'beginning',
    'where a new feed starts; `live`: new runs are stored at once, and the history is read in the background',
  ),
  pageLimit: defaulted(
    'SCANFEED_PAGE_LIMIT',
    integer(1, 200),
    '200',
    'entries per page; halved automatically while pages exceed 16 MiB or the memory budget',
  ),
  pollIntervalMs: defaulted(
    'SCANFEED_POLL_INTERVAL',
    duration('10ms', '1d'),
    '5s',
    'pause at the end of the feed or while its cursor is stuck, counted from the last poll, but at least half of it after the commit. After other pages scanfeed requests the next page at once',
  ),
  resolveConcurrency: defaulted(
    'SCANFEED_RESOLVE_CONCURRENCY',
    integer(1, 64),
    '8',
    'maximum number of concurrent single-run requests for the pages of a feed; the same maximum applies separately to its pending results',
  ),
  pendingRetryMs: defaulted(
    'SCANFEED_PENDING_RETRY_INTERVAL',
    duration('100ms', '1h'),
    '30s',
    'first pause before a pending result is retried, unless only memory was missing; doubles up to 1h. After a week it is one day',
  ),
  memoryBudgetBytes: defaulted(
    'SCANFEED_MEMORY_BUDGET',
    size('1MiB', '16GiB'),
    '64MiB',
    'memory of the process for payloads: pages, prefetched pages and loaded results. A single response can exceed it',
  ),
  leaseTtlMs: defaulted(
    'SCANFEED_LEASE_TTL',
    duration('1s', '1h'),
    '10s',
    'time after which the lease of an unresponsive process expires; others take over a single feed at most 2 s later',
  ),
  keepHistory: defaulted('SCANFEED_HISTORY', flag, 'true', 'keep superseded revisions in `run_history`'),
} as const;

/**
 * Every variable, by group and by the name of its setting, in the order of the reference. Each command reads only the groups that it
 * needs.
 */
export const VARIABLES = {
  service: {
    baseUrl: required('SCANFEED_BASE_URL', baseUrl, 'URL of the service, with `/v1`'),
    allowHttp: defaulted(
      'SCANFEED_ALLOW_HTTP',
      flag,
      'false',
      'allow `http:` to other hosts, for example in a service mesh that encrypts all traffic',
    ),
    apiKey: required('SCANFEED_API_KEY', apiKey, 'bearer token; its file is read again when it changes', {
      secret: true,
    }),
    requestTimeoutMs: defaulted(
      'SCANFEED_REQUEST_TIMEOUT',
      duration('100ms', '10m'),
      '30s',
      'timeout of one HTTP request, from connecting to the last byte, without waits for memory',
    ),
    requestsPerSecond: optional(
      'SCANFEED_REQUESTS_PER_SECOND',
      rate,
      'maximum rate of all requests of the process; it should allow each feed one request per poll interval. While polls wait, at most every fourth request loads a single run',
    ),
    httpsProxy: optional('HTTPS_PROXY', proxyUrl, 'proxy for `https:` base URLs; `https_proxy` takes precedence', {
      secret: true,
    }),
    noProxy: optional(
      'NO_PROXY',
      noProxy,
      'hosts to reach without the proxy, separated by commas; `no_proxy` takes precedence',
    ),
    extraCaCerts: optional('NODE_EXTRA_CA_CERTS', filePath, 'additional certificates (PEM) to trust'),
  },
  feed: { ...FEED_VARIABLES, ...FILTER_VARIABLES },
  database: { ...URL_VARIABLES, ...STORE_VARIABLES, ...PG_VARIABLES },
  reconcile: {
    intervalMs: defaulted(
      'SCANFEED_RECONCILE_INTERVAL',
      durationOrOff('1s', '365d'),
      '1h',
      'pause between recent passes',
    ),
    windowMs: defaulted(
      'SCANFEED_RECONCILE_WINDOW',
      duration('1s', '365d'),
      '2h',
      'how far back a recent pass reads at least; if the range of the previous recent pass ended even earlier, the pass begins ten minutes before that end',
    ),
    fullIntervalMs: defaulted(
      'SCANFEED_RECONCILE_FULL_INTERVAL',
      durationOrOff('1m', '365d'),
      '7d',
      'pause between full passes, which read the whole feed again, one page per second',
    ),
  },
  admin: {
    host: defaulted(
      'SCANFEED_ADMIN_HOST',
      text('an IP address or a host name', /^[A-Za-z0-9.:%_-]+$/),
      '::',
      'address of the server for metrics, health checks and the status page; by default all IPv4 and IPv6 addresses',
    ),
    port: defaulted(
      'SCANFEED_ADMIN_PORT',
      integer(0, 65_535, ' (0: any free port)'),
      '9847',
      'port of that server; if it is in use, scanfeed reports the error and retries',
    ),
  },
  process: {
    feedsFile: optional(
      'SCANFEED_FEEDS_FILE',
      filePath,
      'list of the feeds of this process, in YAML or JSON; each entry overrides some of the variables',
    ),
    shutdownTimeoutMs: defaulted(
      'SCANFEED_SHUTDOWN_TIMEOUT',
      duration('0s', '10m'),
      '10s',
      'maximum time to finish after SIGTERM; then the process exits anyway',
    ),
    logLevel: defaulted(
      'SCANFEED_LOG_LEVEL',
      oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
      'info',
      'minimum level of log lines on stdout',
    ),
    collectorUrl: optional(
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      collectorUrl,
      'OpenTelemetry collector that receives traces of the pages, over HTTP',
    ),
  },
} as const;

export type Group = keyof typeof VARIABLES;
export const GROUPS = Object.keys(VARIABLES) as readonly Group[];
export const ALL_VARIABLES: readonly Variable[] = Object.values(VARIABLES).flatMap((group) =>
  Object.values<Variable>(group),
);
