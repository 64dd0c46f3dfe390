import { feedPath } from '../../src/service/requests.js';
import type { FeedRequest } from '../../src/sync/ports/index.js';
import { DEFAULT_FILTERS } from '../../test/support/filters.js';
import type { ServiceAddress } from './protocol.js';

/** How every contestant reads the feed, by scanfeed's defaults. */
export function feedRequest(cursor: string | null): FeedRequest {
  return {
    filters: DEFAULT_FILTERS,
    start: cursor === null ? { beginning: true } : { cursor },
    limit: 200,
    markdown: false,
  };
}

/**
 * The feed's pages by path, byte for byte as the emulated service sent them. Making up a run costs it more than
 * anybody needs to store one, and the real service works on another machine.
 */
export async function recordFeed({
  url,
  apiKey,
}: Pick<ServiceAddress, 'url' | 'apiKey'>): Promise<ReadonlyMap<string, Buffer>> {
  const pages = new Map<string, Buffer>();
  for (let cursor: string | null = null; ; ) {
    const path = feedPath(feedRequest(cursor));
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${apiKey}` } });
    const body = Buffer.from(await response.arrayBuffer());
    const page = JSON.parse(body.toString()) as { items: unknown[]; nextCursor: string };
    // The last page is requested each time: it may have grown.
    if (page.items.length === 0) return pages;
    pages.set(`/v1${path}`, body);
    cursor = page.nextCursor;
  }
}
