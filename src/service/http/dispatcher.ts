import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { openProxyPool } from './proxy-pool.js';

/** Proxies, as in the usual environment variables. An empty string means none. */
export interface ProxySettings {
  /** For `https:` URLs, as in HTTPS_PROXY. */
  readonly httpsProxy?: string | undefined;
  /** For `http:` URLs, as in HTTP_PROXY; also for `https:` if `httpsProxy` is missing. */
  readonly httpProxy?: string | undefined;
  /** Hosts to reach directly, as in NO_PROXY: names with optional port, `.suffix`, `*`; separated by commas. */
  readonly noProxy?: string | undefined;
}

/** How to connect to the service. */
export interface DispatcherOptions {
  /** Proxies to use. Default: none. */
  readonly proxy?: ProxySettings | undefined;
  /** Certificates (PEM) to trust instead of Node's own list. To add to that list, start Node with NODE_EXTRA_CA_CERTS. */
  readonly ca?: string | readonly string[] | undefined;
  /** Maximum number of connections; further requests wait, within their timeout. Default 16. */
  readonly connections?: number | undefined;
  /** Timeout for a new connection including TLS, milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * Creates an undici dispatcher for the service: HTTP/1.1, kept-alive connections, no redirects, no retries. Does not read the
 * environment. Destroy it when done.
 */
export function createDispatcher(options: DispatcherOptions = {}): Dispatcher {
  const { proxy = {}, ca, connections = 16, connectTimeoutMs = 10_000 } = options;
  const tls = { timeout: connectTimeoutMs, ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }) };
  const agentOptions = {
    connections,
    connect: tls,
    keepAliveTimeout: 15_000, // longer than the usual pause between two polls
    keepAliveMaxTimeout: 60_000,
    maxHeaderSize: 16_384,
  };
  if (!proxy.httpsProxy && !proxy.httpProxy) return new Agent(agentOptions);
  return new EnvHttpProxyAgent({
    ...agentOptions,
    // For undefined undici would read the environment.
    httpsProxy: proxy.httpsProxy ?? '',
    httpProxy: proxy.httpProxy ?? '',
    noProxy: proxy.noProxy ?? '',
    requestTls: tls,
    proxyTls: tls,
    // A proxy that never answers a CONNECT would block its connection for undici's default of 300 s.
    clientFactory: (origin, poolOptions) => openProxyPool(origin, { ...poolOptions, headersTimeout: connectTimeoutMs }),
  });
}
