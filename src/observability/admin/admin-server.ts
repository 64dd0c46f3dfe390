import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import type { Clock } from '../../core/clock.js';
import type { Logger } from '../log/logger.js';
import type { Metrics } from '../metrics/metrics.js';
import type { ProcessLiveness } from './liveness.js';
import { createPacedAnswers, type PacedAnswers } from './paced-answers.js';
import type { Readiness } from './readiness.js';
import { runbookRoute } from './runbooks.js';
import { type Answer, createSingleRequestServer, type Request, textAnswer } from './single-request-server.js';
import { type StatusContext, type StatusOptions, statusRoute } from './status-routes.js';

export interface AdminServerOptions extends StatusOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly metrics: Metrics;
  readonly liveness: ProcessLiveness;
  readonly readiness: Readiness;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Ends the attempts to listen. A server that is listening continues until it is closed. */
  readonly signal: AbortSignal;
}

type Context = AdminServerOptions &
  StatusContext & {
    /** Returns what limits the rendering of responses of one kind. */
    readonly paced: (kind: string) => PacedAnswers;
  };
type Route = (context: Context, query: URLSearchParams, isWanted: Request['isWanted']) => Answer | Promise<Answer>;

/** Pause between two attempts to listen, milliseconds. */
const PAUSE_MS = 5_000;
const ALLOWED_METHODS = ['GET', 'HEAD'];

/** Responses that are rendered at once: they take no time, and Kubernetes restarts a container that does not respond to them. */
const PROBES: Readonly<Record<string, Route>> = {
  '/livez': ({ liveness }) => {
    const { alive, feed, silentMs } = liveness.check();
    return alive
      ? textAnswer(200, 'alive')
      : textAnswer(503, `the sync loop of ${feed} has been unresponsive for ${Math.floor(silentMs / 1000)} s`);
  },
  '/readyz': ({ readiness }) => {
    const { ready, reason } = readiness.check();
    return ready ? textAnswer(200, 'ready') : textAnswer(503, `not ready: ${reason ?? 'unknown'}`);
  },
};

const METRICS: Route = async ({ metrics }) => {
  const { contentType, text } = await metrics.exposition();
  return { status: 200, contentType, body: text };
};

/**
 * Serves metrics, health and status over HTTP. If the port is unavailable, it logs the failure and retries: runs are stored
 * without it.
 */
export function startAdminServer(options: AdminServerOptions) {
  const closed = new AbortController();
  const startedAt = new Date(options.clock.now()).toISOString();
  const context = { ...options, startedAt, paced: createPacing(options.clock, closed.signal) };
  const { server, closeConnections } = createSingleRequestServer(
    (request) => answerTo(request, context),
    options.clock,
  );
  const settled = listen(server, options, AbortSignal.any([options.signal, closed.signal]));
  return {
    /** Returns the address that it listens on, or null. */
    address: () => (server.listening ? (server.address() as AddressInfo) : null),
    /** Settles once it listens, was closed, or the signal aborted. */
    settled,
    /** Stops listening and ends all connections immediately. Repeated calls have no effect. */
    async close(): Promise<void> {
      closed.abort();
      await settled;
      await new Promise<void>((resolve) => {
        server.close(() => resolve()); // calls back even if it does not listen
        closeConnections();
      });
    },
  };
}

async function listen(server: Server, { host, port, logger, clock }: AdminServerOptions, signal: AbortSignal) {
  // Without a host Node listens on every address of IPv6, or of IPv4 on a machine without IPv6.
  const target = host === '::' ? { port } : { host, port };
  let loggedCode: string | undefined;
  while (!signal.aborted) {
    try {
      server.listen(target);
      await once(server, 'listening');
      server.on('error', (later) => logger.error('admin server error', { error: later }));
      const address = server.address() as AddressInfo;
      return logger.info('admin server is listening', { host: address.address, port: address.port });
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      const level = code === loggedCode ? 'debug' : 'error';
      loggedCode = code;
      const remedy = 'set SCANFEED_ADMIN_PORT or SCANFEED_ADMIN_HOST';
      logger[level]('admin address unavailable, retrying', { host, port, pauseMs: PAUSE_MS, remedy, error });
      await clock.sleep(PAUSE_MS, signal);
    }
  }
}

/** Returns a function that limits the rendering of each kind of response on its own: one kind does not delay another. */
function createPacing(clock: AdminServerOptions['clock'], signal: AbortSignal): Context['paced'] {
  const kinds = new Map<string, PacedAnswers>();
  return (kind) => {
    const paced = kinds.get(kind) ?? createPacedAnswers(clock, signal);
    kinds.set(kind, paced);
    return paced;
  };
}

function routeOf(path: string, { single }: Context): Route | undefined {
  if (Object.hasOwn(PROBES, path)) return PROBES[path];
  const route = path === '/metrics' ? METRICS : (statusRoute(path, single) ?? runbookRoute(path));
  if (route === undefined) return undefined;
  const kind = /^\/[^/]*/.exec(path)?.[0] ?? path;
  return (context, query, isWanted) =>
    context.paced(kind)({
      // Only the list of feeds reads the query.
      key: path === '/' && !single ? `${path}?${query}` : path,
      isWanted,
      render: () => route(context, query, isWanted),
    });
}

/** Never rejects. */
async function answerTo({ method, path, query, isWanted }: Request, context: Context): Promise<Answer> {
  const route = routeOf(path, context);
  if (route === undefined) return textAnswer(404, 'not found; see / for the status page');
  if (!ALLOWED_METHODS.includes(method)) {
    return {
      ...textAnswer(405, 'only GET and HEAD are supported'),
      headers: { allow: ALLOWED_METHODS.join(', ') },
    };
  }
  try {
    return await route(context, query, isWanted);
  } catch (error) {
    context.logger.error('admin request failed', { path, error });
    return textAnswer(500, 'internal error; see the log');
  }
}
