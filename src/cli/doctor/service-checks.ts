import type { Clock } from '../../core/clock.js';
import { type FeedFilters, filterParameters } from '../../core/feed-filters.js';
import { isLoopback } from '../../core/loopback.js';
import type { ServiceClient } from '../../service/client.js';
import { withService } from '../context/with-service.js';
import {
  type Checks,
  type Finding,
  failing,
  messageOf,
  ok,
  type Result,
  runChecks,
  skipChecks,
  skipped,
  warning,
} from './finding.js';
import { type NetworkRoute, observeRoute } from './observe-route.js';
import type { UsableSettings } from './settings-checks.js';

/** Remaining validity below which a certificate is reported, milliseconds. */
const CERTIFICATE_WARNING_MS = 14 * 86_400_000;

/** Kinds of failures without an answer of the service. */
const UNREACHED: ReadonlySet<string> = new Set(['connection', 'proxy', 'certificate']);

interface ServiceContext {
  readonly baseUrl: string;
  readonly filters: FeedFilters;
  readonly route: NetworkRoute;
  /** The answer to the first request; null if it failed. */
  readonly answer: Answer | null;
  /** Failure of the first request, with the message that the daemon would log; empty if it was answered. */
  readonly failure: Failure;
  readonly isConnected: boolean;
  /** Wall clock, milliseconds. */
  readonly now: number;
  readonly readEntry: (documentType: string | null) => Promise<Answer>;
}

type Answer = Awaited<ReturnType<typeof readFirstEntry>>;
type Failure = ReturnType<typeof describeFailure>;

/** Checks from the connection to the answer. Checks that depend on a failed one are skipped. */
const CHECKS: Checks<ServiceContext> = {
  'service connection': checkConnection,
  'service TLS': checkTls,
  'delivery feed': checkFeed,
  'document type': checkDocumentType,
  'service cache': checkCache,
};

/** Checks the service with a request for the first entry of its feed. Stores nothing. */
export async function checkService({ service, feed }: UsableSettings, clock: Clock): Promise<readonly Finding[]> {
  if (service === null || feed === null) {
    return skipChecks(Object.keys(CHECKS), 'requires the settings of the service');
  }
  const { baseUrl } = service;
  const { filters } = feed;
  return withService(service, 1, clock, async (_, client) => {
    const readEntry = (documentType: string | null) => readFirstEntry(client, { ...filters, documentType }, clock);
    const { route, value } = await observeRoute(baseUrl, () => Promise.allSettled([readEntry(null)]));
    const [first] = value;
    const failure = describeFailure(first.status === 'rejected' ? first.reason : null);
    return runChecks(CHECKS, {
      ...{ baseUrl, filters, route, failure, readEntry },
      answer: first.status === 'fulfilled' ? first.value : null,
      isConnected: route.address !== null && !UNREACHED.has(failure.kind),
      now: clock.now(),
    });
  });
}

async function readFirstEntry(client: ServiceClient, filters: FeedFilters, clock: Clock) {
  const begun = clock.monotonic();
  const page = await client.readPage({ filters, start: { beginning: true }, limit: 1, markdown: false });
  return { tookMs: clock.monotonic() - begun, entries: page.items.length, cache: page.cache ?? null };
}

/** @param error null if the request was answered */
function describeFailure(error: unknown) {
  const { kind = 'internal', status } = (error ?? { kind: '' }) as Readonly<Record<string, unknown>>;
  return { kind: String(kind), status, message: messageOf(error) };
}

function checkConnection({ baseUrl, route: { proxy, address }, failure, isConnected }: ServiceContext): Result {
  if (!isConnected) return failing(proxy === null ? failure.message : `proxy ${proxy}: ${failure.message}`);
  return ok(`${new URL(baseUrl).hostname} ${proxy === null ? `at ${address}` : `through the proxy ${proxy}`}`);
}

function checkTls({ baseUrl, route, isConnected, now }: ServiceContext): Result {
  if (!isConnected) return skipped('requires a connection');
  const url = new URL(baseUrl);
  if (url.protocol === 'http:') {
    return isLoopback(url)
      ? ok('not used on a loopback address')
      : warning(
          'not used: the key and all documents cross the network unencrypted, unless a mesh encrypts them; use https:',
        );
  }
  if (route.tls === null) return ok('encrypted');
  const { protocol, validTo } = route.tls;
  if (validTo === null) return ok(protocol);
  const until = validTo.toISOString().slice(0, 10);
  return validTo.getTime() - now < CERTIFICATE_WARNING_MS
    ? warning(`${protocol}; the certificate expires on ${until}; ask the operator of the service to renew it`)
    : ok(`${protocol}, certificate valid until ${until}`);
}

function checkFeed({ baseUrl, filters, answer, failure, isConnected }: ServiceContext): Result {
  if (!isConnected) return skipped('requires a connection');
  if (failure.status === 404) return failing(`${baseUrl} has no feed (404); check the base URL, which must end in /v1`);
  if (answer === null) return failing(failure.message);
  const parameters = filterParameters({ ...filters, documentType: null });
  const request = parameters.map(([name, value]) => `${name} ${value.replaceAll(',', ', ')}`).join(', ');
  const state = answer.entries === 0 ? 'answers and is empty' : 'answers';
  return ok(`${state} (${request}; ${Math.round(answer.tookMs)} ms)`);
}

async function checkDocumentType({ filters, answer, readEntry }: ServiceContext): Promise<Result> {
  if (filters.documentType === null) return ok('all types: no document type is configured');
  if (answer === null) return skipped('requires an answer from the feed');
  const slug = JSON.stringify(filters.documentType);
  const [typed] = await Promise.allSettled([readEntry(filters.documentType)]);
  if (typed.status === 'fulfilled') return ok(`${slug} exists`);
  const { status, message } = describeFailure(typed.reason);
  if (status !== 404) return failing(message);
  return failing(`${slug} is unknown to the service; correct the document type: ${message}`);
}

/** A cache that keeps responses gives the answer to a repeated request. */
async function checkCache({ answer, readEntry }: ServiceContext): Promise<Result> {
  if (answer === null) return skipped('requires an answer from the feed');
  const cache = answer.cache ?? (await readEntry(null)).cache;
  if (cache === null) return ok('no response shows one');
  return warning(
    `${cache.name ?? 'a cache'} answered instead of the service (${cache.evidence}); exclude the service from it: new runs arrive late, and it may mix up organizations`,
  );
}
