import { sql } from 'kysely';
import type { FeedRequest, FeedService } from '../../src/sync/ports/index.js';
import { entryJson, pageJson } from './entries.js';
import { rawPage } from './pages.js';
import { type StoreSetup, tables } from './store.js';

/** A feed of three pages with a correction and a bad entry in them. Its scan ids begin with its name. */
export interface SmallFeed {
  readonly name: string;
  readonly service: FeedService;
}

/** Pages that hold something. */
export const SMALL_FEED_PAGES = 3;

/** @param name letters and digits, another one for each feed: a recycled scan id would hide a loss */
export function smallFeed(name: string): SmallFeed {
  const entry = (scan: string, over = {}) => entryJson({ scanId: `${name}-${scan}`, ...over });
  const pages = [
    [entry('a'), entry('b'), entry('c')],
    [entry('a', { revision: 2 }), entry('d'), entry('bad', { status: 'unheard-of' })],
    [entry('e'), entry('f', { status: 'failed', data: undefined, failureReason: 'unreadable' })],
    [],
  ];
  const place = (request: FeedRequest) => ('cursor' in request.start ? Number(request.start.cursor.split(':')[1]) : 0);
  return {
    name,
    service: {
      readPage: async (request) => {
        const at = place(request);
        const next = Math.min(at + 1, SMALL_FEED_PAGES);
        return rawPage(pageJson(pages[at] ?? [], `${name}:${next}`));
      },
      readRun: async () => Promise.reject(new Error('nothing is truncated')),
    },
  };
}

/** What must be in the database of a small feed that was read to its end, each entry written exactly once. */
export const storedOnce = (name: string) => ({
  cursor: `${name}:${SMALL_FEED_PAGES}`,
  runs: ['a 2', 'b 1', 'c 1', 'd 1', 'e 1', 'f 1'],
  history: ['a 1'],
  quarantine: ['bad once'],
  /** Rows other than the corrected one that were written again after they were stored. */
  rewritten: 0,
});

export async function readSmallFeed(setup: StoreSetup, name: string): Promise<ReturnType<typeof storedOnce>> {
  const { runs, runHistory, quarantine, feeds } = tables;
  const [row] = await setup.rows(sql<ReturnType<typeof storedOnce>>`
    SELECT cursor,
      ARRAY(SELECT split_part(scan_id, '-', 2) || ' ' || revision FROM ${runs} WHERE feed = name ORDER BY 1) AS runs,
      ARRAY(SELECT split_part(scan_id, '-', 2) || ' ' || revision FROM ${runHistory} WHERE feed = name) AS history,
      ARRAY(SELECT split_part(scan_id, '-', 2) || CASE times_seen WHEN 1 THEN ' once' ELSE ' again' END
        FROM ${quarantine} WHERE feed = name AND state = 'open') AS quarantine,
      (SELECT count(*)::int FROM ${runs} WHERE feed = name AND revision = 1 AND synced_at <> first_synced_at) AS rewritten
    FROM ${feeds} WHERE name = ${name}`);
  if (row === undefined) throw new Error(`there is no feed ${name}`);
  return row;
}
