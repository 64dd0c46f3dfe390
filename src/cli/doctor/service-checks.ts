import type { Clock } from '../../core/clock.js';
import { type FeedFilters, filterParameters } from '../../core/feed-filters.js';
import type { ServiceClient } from '../../service/client.js';
import { HttpStatusError } from '../../service/errors/status-errors.js';
import type { SettingsFor } from '../../settings/settings.js';
import { withService } from '../context/with-service.js';
import {
  type Checks,
  type Finding,
  failing,
  messageOf,
  ok,
  type Result,
  runChecks,
  skipped,
  warning,
} from './finding.js';

interface ServiceContext {
  readonly baseUrl: string;
  readonly filters: FeedFilters;
  /** The response to the first request. */
  readonly first: PromiseSettledResult<Answer>;
  readonly readEntry: (documentType: string | null) => Promise<Answer>;
}

type Answer = Awaited<ReturnType<typeof readFirstEntry>>;

const CHECKS: Checks<ServiceContext> = {
  'delivery feed': checkFeed,
  'document type': checkDocumentType,
  'service cache': checkCache,
};

/** Checks the service with a request for the first entry of its feed. Stores nothing. */
export async function checkService(
  { service, feed: { filters } }: SettingsFor<'service' | 'feed'>,
  clock: Clock,
): Promise<readonly Finding[]> {
  return withService(service, 1, clock, async (_, client) => {
    const readEntry = (documentType: string | null) => readFirstEntry(client, { ...filters, documentType }, clock);
    const [first] = await Promise.allSettled([readEntry(null)]);
    return runChecks(CHECKS, { baseUrl: service.baseUrl, filters, first, readEntry });
  });
}

async function readFirstEntry(client: ServiceClient, filters: FeedFilters, clock: Clock) {
  const begun = clock.monotonic();
  const page = await client.readPage({ filters, start: { beginning: true }, limit: 1, markdown: false });
  return { tookMs: clock.monotonic() - begun, entries: page.items.length, cache: page.cache ?? null };
}

function checkFeed({ baseUrl, filters, first }: ServiceContext): Result {
  if (first.status === 'rejected') {
    if (!isNotFound(first.reason)) throw first.reason;
    return failing(`${baseUrl} has no feed (404); check the base URL, which must end in /v1`);
  }
  const parameters = filterParameters({ ...filters, documentType: null });
  const request = parameters.map(([name, value]) => `${name} ${value.replaceAll(',', ', ')}`).join(', ');
  const state = first.value.entries === 0 ? 'responds and is empty' : 'responds';
  return ok(`${state} (${request}; ${Math.round(first.value.tookMs)} ms)`);
}

async function checkDocumentType({ filters, first, readEntry }: ServiceContext): Promise<Result> {
  if (filters.documentType === null) return ok('all types: no document type is configured');
  if (first.status === 'rejected') return skipped('requires a response from the feed');
  const slug = JSON.stringify(filters.documentType);
  try {
    await readEntry(filters.documentType);
    return ok(`${slug} exists`);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return failing(`${slug} is unknown to the service; correct the document type: ${messageOf(error)}`);
  }
}

/** A cache that keeps responses gives the response to a repeated request. */
async function checkCache({ first, readEntry }: ServiceContext): Promise<Result> {
  if (first.status === 'rejected') return skipped('requires a response from the feed');
  const cache = first.value.cache ?? (await readEntry(null)).cache;
  if (cache === null) return ok('no response shows one');
  return warning(
    `${cache.name ?? 'a cache'} responded instead of the service (${cache.evidence}); exclude the service from this cache: it delays new runs, and may mix up organizations`,
  );
}

function isNotFound(error: unknown): boolean {
  return error instanceof HttpStatusError && error.status === 404;
}
