/** Reads the feed page by page and stores nothing: how fast the service can be read at all. */
import { Agent } from 'undici';
import { feedPath } from '../../src/service/requests.js';
import { feedRequest } from '../service/recording.js';
import { contest } from './contest.js';

await contest(async ({ serviceUrl, apiKey }) => {
  const dispatcher = new Agent({ connections: 1 });
  const { origin, pathname } = new URL(serviceUrl);
  const headers = { authorization: `Bearer ${apiKey}` };
  return async () => {
    let runs = 0;
    for (let cursor: string | null = null; ; ) {
      const path = pathname + feedPath(feedRequest(cursor));
      const { body } = await dispatcher.request({ origin, path, method: 'GET', headers });
      const page = JSON.parse(await body.text()) as { items: unknown[]; nextCursor: string };
      if (page.items.length === 0) return runs;
      runs += page.items.length;
      cursor = page.nextCursor;
    }
  };
});
