import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/cli/system-clock.js';
import { createByteBudget } from '../../src/sync/byte-budget.js';
import { openAhead } from '../../src/sync/open-ahead.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { engineContext } from '../support/engine.js';
import { entryJson } from '../support/entries.js';

/** What is asked for and what is looked at, in this order, of a feed of so many pages of ten entries. */
async function readToTheEnd(pages: number): Promise<readonly string[]> {
  const events: string[] = [];
  const service = new ModelService();
  for (let n = 0; n < pages * 10; n += 1) service.feed.push(entryJson({ scanId: `scan-${n}` }));
  const readPage = service.readPage.bind(service);
  service.readPage = async (request, signal) => {
    const from = 'cursor' in request.start ? Number(request.start.cursor) : 0;
    events.push(`ask ${from}`);
    const page = await readPage(request, signal);
    const [first, ...others] = page.items;
    if (first === undefined || first === null) return page;
    const watched = new Proxy(first, {
      get: (entry, name) => {
        if (events.at(-1) !== `check ${from}`) events.push(`check ${from}`);
        return Reflect.get(entry, name);
      },
    });
    return { ...page, items: [watched, ...others] };
  };
  const stop = new AbortController();
  const context = engineContext({ clock: systemClock, service, store: new ModelStore(systemClock.monotonic) });
  const budget = createByteBudget(64 * 1024 * 1024);
  const ahead = openAhead(
    { cursor: null, since: null },
    { line: 'feed', maxJoined: 1 },
    { ...context, budget, pagesAhead: 2 },
    stop.signal,
  );
  while ((await ahead.next()) !== null);
  ahead.stop();
  return events;
}

describe('pages that are read ahead', () => {
  it('are checked after the next was asked for, so that no request waits for it', async () => {
    expect(await readToTheEnd(2)).toEqual(['ask 0', 'ask 10', 'check 0', 'ask 20', 'check 10']);
  });
});
