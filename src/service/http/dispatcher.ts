import { X509Certificate } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { unescape as unescapePercent } from 'node:querystring';
import { Agent, type buildConnector, type Dispatcher, errors, ProxyAgent } from 'undici';
import { type Clock, systemClock } from '../../core/clock.js';
import { ATTEMPT_TIMEOUT_MS, lookupHost } from '../../core/host-lookup.js';
import { parseNoProxy } from '../../core/no-proxy.js';
import { succeeds } from '../../core/succeeds.js';
import { atLeastOne, requireArgument, requireFunctions } from '../check-arguments.js';
import { noResponseError } from '../errors/connection-errors.js';
import { openProxyPool } from './proxy-pool.js';
import { RenewingDispatcher } from './renewing-dispatcher.js';

/** Proxies, as in the usual environment variables. An empty string means none. */
export interface ProxySettings {
  /** For `https:` URLs, as in HTTPS_PROXY. */
  readonly httpsProxy?: string | undefined;
  /** For `http:` URLs, as in HTTP_PROXY; also for `https:` if `httpsProxy` is missing. */
  readonly httpProxy?: string | undefined;
  /** Hosts to reach directly, as in NO_PROXY: names, addresses or subnets, with optional port, or `*`; separated by commas. */
  readonly noProxy?: string | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;

type ConnectOptions = buildConnector.BuildOptions & { readonly timeout: number };

/** The way to the service. */
export interface RouteOptions {
  /** Proxies to use. Default: none. */
  readonly proxy?: ProxySettings | undefined;
  /** Certificates (PEM) to trust instead of Node's own list. To add to that list, start Node with NODE_EXTRA_CA_CERTS. */
  readonly ca?: string | readonly string[] | undefined;
}

/** How to connect to the service. */
export interface DispatcherOptions extends RouteOptions {
  /** Called when connections are replaced. The next replacement uses what it returns. It must not reject. */
  readonly readAgain?: (() => Promise<RouteOptions>) | undefined;
  /** Maximum number of connections; further requests wait, within their timeout. Default 16. */
  readonly connections?: number | undefined;
  /** Timeout for a new connection including TLS, milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Looks up host names. Default: one lookup of the process at a time for each name. */
  readonly lookup?: LookupFunction | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/**
 * Creates an undici dispatcher for the service: HTTP/1.1, kept-alive connections that are replaced after a minute, no redirects,
 * no retries. Does not read the environment. Destroy it when done.
 * @throws InvalidArgumentError
 */
export function createDispatcher(options: DispatcherOptions = {}): Dispatcher {
  const { connections = 16, connectTimeoutMs = CONNECT_TIMEOUT_MS, readAgain } = options;
  const { lookup = lookupHost, clock = systemClock } = options;
  atLeastOne(connections, 'connections');
  atLeastOne(connectTimeoutMs, 'connectTimeoutMs');
  requireFunctions({ lookup, readAgain });
  requireRoute(options);
  const connect = {
    timeout: connectTimeoutMs,
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS,
  };
  const agentOptions = {
    connections,
    keepAliveTimeout: 15_000, // longer than the usual pause between two polls
    keepAliveMaxTimeout: 60_000,
    maxHeaderSize: 16_384,
  };
  let { ca } = options;
  let proxyFor = chooseProxy(options.proxy);
  const open = (origin: string) => {
    const proxyUrl = proxyFor(new URL(origin));
    const trusted = ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] };
    const current = { ...agentOptions, connect: { ...connect, ...trusted } };
    void readAgain?.().then((next) => {
      ca = next.ca;
      proxyFor = chooseProxy(next.proxy);
    });
    return proxyUrl === '' ? new Agent(current) : openProxyAgent(new URL(proxyUrl), current);
  };
  const describeError = (error: Error, origin: string) =>
    error instanceof errors.ConnectTimeoutError ? noResponseError(origin, error.code, connectTimeoutMs) : error;
  return new RenewingDispatcher({ open, describeError, clock });
}

/** Checks what would fail at the first request, or be ignored. @throws InvalidArgumentError */
function requireRoute({ proxy = {}, ca = [] }: RouteOptions): void {
  const { httpsProxy, httpProxy, noProxy = '' } = proxy;
  for (const [name, url = ''] of Object.entries({ httpsProxy, httpProxy })) {
    const isProxy = url === '' || (/^https?:/i.test(url) && URL.canParse(url));
    requireArgument(isProxy, `${name} must be an http or https URL, such as http://proxy.example:3128`);
  }
  const isList = succeeds(() => parseNoProxy(noProxy));
  requireArgument(isList, 'noProxy must be host names, addresses or subnets, separated by commas');
  const isTrusted = [ca].flat().every((each) => succeeds(() => new X509Certificate(each)));
  requireArgument(isTrusted, 'ca must be certificates in PEM');
}

/** Returns a function that returns the URL of the proxy for a URL, or an empty string. */
function chooseProxy({ httpsProxy, httpProxy, noProxy = '' }: ProxySettings = {}): (url: URL) => string {
  const isDirect = parseNoProxy(noProxy);
  return (url) => (isDirect(url) ? '' : (url.protocol === 'https:' && httpsProxy) || httpProxy || '');
}

function openProxyAgent(url: URL, options: Agent.Options & { readonly connect: ConnectOptions }): ProxyAgent {
  const { username, password } = url;
  // undici alone sends nothing if the password is missing.
  const credentials = Buffer.from(`${unescapePercent(username)}:${unescapePercent(password)}`).toString('base64');
  return new ProxyAgent({
    ...options,
    uri: url.href,
    ...(username === '' && password === '' ? {} : { token: `Basic ${credentials}` }),
    requestTls: options.connect,
    proxyTls: options.connect,
    // A proxy that never answers a CONNECT would block its connection for undici's default of 300 s.
    clientFactory: (origin, poolOptions) =>
      openProxyPool(origin, { ...poolOptions, headersTimeout: options.connect.timeout }),
  });
}
