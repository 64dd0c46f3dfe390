import { troubleOf } from '../outcome/trouble.js';
import type { CommitCounts, FeedFilters, FeedService, Trouble } from './ports.js';
import { listsAnything, type Probe } from './probe.js';
import { type FetchedPage, startAt } from './read-page.js';

/** What of a page tells the end. */
export type PolledPage = Pick<FetchedPage, 'at' | 'next'> & { readonly draft: Pick<FetchedPage['draft'], 'items'> };

/**
 * Whether a page without entries is the end of the feed (promise 10). A cursor that moved may have passed runs that the
 * filters hide, and more may follow; then the same position is asked once without filters. The answer holds as of the
 * sending of the page's own poll, which came first.
 */
export async function isEndOfFeed(
  page: PolledPage,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<boolean> {
  if (page.draft.items > 0 || page.next === null) return false;
  if (page.next === page.at.cursor || hidesNothing(filters)) return true;
  const more = await listsAnything(service, unfilteredProbe(page), signal).catch((error) => {
    throw troubleOf(error).kind === 'http_400' ? new EndProbeRefused(error) : error;
  });
  return !more;
}

/** The cursor was accepted with filters and is refused without: not the cursor's fault, so it must not be given up. */
class EndProbeRefused extends Error implements Trouble {
  override readonly name = 'EndProbeRefused';
  readonly kind = 'end_probe';
  readonly remedy = 'hold';
  constructor(cause: unknown) {
    super(
      'the service refuses the poll without filters that tells the end of the feed from a stretch they hide; ask its operators, or set SCANFEED_ENVIRONMENT=all without SCANFEED_DOCUMENT_TYPE',
      { cause },
    );
  }
}

/**
 * A cursor that stays while entries come is the end only if the page is short and nothing on it was new. Of several pages
 * that were committed together it did not stay: it came back.
 */
export function isEndAfterCommit(page: FetchedPage, counts: CommitCounts): boolean {
  const { items } = page.draft;
  if (page.through.length > 1 || items === 0 || items >= page.limit || page.next === null) return false;
  return page.next === page.at.cursor && counts.inserted + counts.updated === 0;
}

function hidesNothing({ status, environment, documentType }: FeedFilters): boolean {
  return status.includes('completed') && status.includes('failed') && environment === 'all' && documentType === null;
}

function unfilteredProbe(page: PolledPage): Probe {
  return {
    filters: { status: ['completed', 'failed'], environment: 'all', documentType: null },
    start: startAt(page.at),
  };
}
