import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { openProxyPool } from './proxy-pool.js';

/** Proxies as the usual environment variables name them. Empty text means none. */
export interface ProxySettings {
  /** For `https:` addresses, as in HTTPS_PROXY. */
  readonly httpsProxy?: string | undefined;
  /** For `http:` addresses, as in HTTP_PROXY; also for `https:` where `httpsProxy` is missing. */
  readonly httpProxy?: string | undefined;
  /** Hosts that are reached directly, as in NO_PROXY: names with optional port, `.suffix`, `*`; separated by commas. */
  readonly noProxy?: string | undefined;
}

export interface DispatcherOptions {
  readonly proxy?: ProxySettings | undefined;
  /** Certificates (PEM) to trust instead of Node's own list. To add to that list, start Node with NODE_EXTRA_CA_CERTS. */
  readonly ca?: string | readonly string[] | undefined;
  /** Connections at most; requests over that wait, within their deadline. Default 16. */
  readonly connections?: number | undefined;
  /** Time to set up a connection, TLS included, milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * An undici dispatcher fit for the service: HTTP/1.1, kept-alive connections, no redirects, no retries. The environment
 * is not read. Destroy it when done.
 */
export function createDispatcher(options: DispatcherOptions = {}): Dispatcher {
  const { proxy = {}, ca, connections = 16, connectTimeoutMs = 10_000 } = options;
  const tls = { timeout: connectTimeoutMs, ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }) };
  const agentOptions = {
    connections,
    connect: tls,
    keepAliveTimeout: 15_000, // outlives the usual pause between two polls
    keepAliveMaxTimeout: 60_000,
    maxHeaderSize: 16_384,
  };
  if (!proxy.httpsProxy && !proxy.httpProxy) return new Agent(agentOptions);
  return new EnvHttpProxyAgent({
    ...agentOptions,
    // Empty text instead of undefined, for which undici would read the environment.
    httpsProxy: proxy.httpsProxy ?? '',
    httpProxy: proxy.httpProxy ?? '',
    noProxy: proxy.noProxy ?? '',
    requestTls: tls,
    proxyTls: tls,
    // A proxy that takes a CONNECT and never answers would hold its connection for undici's default of 300 s.
    clientFactory: (origin, poolOptions) => openProxyPool(origin, { ...poolOptions, headersTimeout: connectTimeoutMs }),
  });
}
