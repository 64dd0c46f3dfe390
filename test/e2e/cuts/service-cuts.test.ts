import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import { type Emulator, type FaultInput, startEmulator } from '../../../src/emulator/index.js';
import { RecognitionClient } from '../../../src/service/client.js';
import { type Followed, followToTheEnd } from '../../support/follow-to-the-end.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { afterBytes, type CutManner, TcpProxy } from '../../support/tcp-proxy.js';
import { watchUncaught } from '../../support/uncaught.js';

const provided = useDatabase(MIGRATED);
const bench = useStore(provided);
const uncaught = watchUncaught();
afterEach(() => expect(uncaught).toEqual([]));

const PAGES = 3;
const PAGE = 20;
/** Cuts a session is given, at places spread over the bytes of the service's answers. */
const PLACES = 12;
const FILTERS = { status: ['completed', 'failed'], environment: 'prod', documentType: null } as const;
/** Bodies without a Content-Length. */
const CHUNKED: FaultInput = { kind: 'slow', operation: 'feed', chunked: true, dripBytes: 4096, dripMs: 0 };

interface Session {
  readonly followed: Followed;
  /** Bytes that the service sent. */
  readonly answered: number;
  /** Whole pages in the database when each failure was noticed, and at the end. */
  readonly pagesStored: readonly number[];
}

interface Harm {
  readonly name: string;
  readonly faults?: readonly FaultInput[];
  readonly requestTimeoutMs?: number;
  /** Done before the session begins. */
  readonly begin?: (proxy: TcpProxy) => void;
  /** Done at the first failure. */
  readonly onFirstFailure?: (proxy: TcpProxy) => void;
}

let sessions = 0;

/** Follows a feed of three pages, through a proxy that does harm, and looks at each failure whether all is in order. */
async function session(harm: Harm): Promise<Session> {
  sessions += 1;
  const seed = sessions; // so that no two sessions have a scan id in common
  const emulator = await startEmulator({ seed, switches: { faults: [...(harm.faults ?? [])] } });
  emulator.appendCount(PAGES * PAGE);
  const proxy = await TcpProxy.to(emulator.url);
  const client = new RecognitionClient({
    baseUrl: proxy.urlOf(emulator.url),
    apiKey: emulator.apiKey,
    requestTimeoutMs: harm.requestTimeoutMs ?? 10_000,
  });
  const pagesBehind = notePages(emulator);
  const looks: Promise<number>[] = [];
  const feed = `${harm.name}-${seed}`;
  const look = () => {
    const pages = wholePages(feed, pagesBehind);
    looks.push(pages);
    return pages;
  };
  let failures = 0;
  try {
    harm.begin?.(proxy);
    const followed = await followToTheEnd({
      url: provided.url,
      feed,
      service: client,
      context: { read: { filters: FILTERS, markdown: false, pageLimit: PAGE } },
      onFailed: () => {
        failures += 1;
        const heal = failures === 1 ? () => harm.onFirstFailure?.(proxy) : undefined;
        look().then(heal, heal); // not before it was looked: the next page may be quick
      },
    });
    look();
    const expected = [...emulator.entries()].map((entry) => ('version' in entry ? entry.version.scanId : ''));
    expect((await storedScans(feed)).sort()).toEqual(expected.sort());
    const answered = proxy.connections.reduce((sum, { passed }) => sum + passed.server, 0);
    return { followed, answered, pagesStored: await Promise.all(looks) };
  } finally {
    await client.close();
    await proxy.close();
    await emulator.close();
  }
}

/** How many pages lie behind each cursor that was handed out. */
function notePages(emulator: Emulator): ReadonlyMap<string | null, number> {
  const behind = new Map<string | null, number>([[null, 0]]);
  emulator.requests.observe(({ query, served, nextCursor }) => {
    const before = behind.get((query.cursor as string | undefined) ?? null) ?? 0;
    if (nextCursor !== null && !behind.has(nextCursor)) behind.set(nextCursor, before + (served.length > 0 ? 1 : 0));
  });
  return behind;
}

/** Fails unless the database holds exactly what lies before its cursor. */
async function wholePages(feed: string, pagesBehind: ReadonlyMap<string | null, number>): Promise<number> {
  const [row] = await bench.rows(sql<{ cursor: string | null; stored: number }>`
    SELECT cursor, (SELECT count(*)::int FROM ${tables.runs} WHERE feed = name) AS stored
    FROM ${tables.feeds} WHERE name = ${feed}`);
  const pages = pagesBehind.get(row?.cursor ?? null);
  expect(row?.stored).toBe((pages ?? Number.NaN) * PAGE);
  return pages as number;
}

const storedScans = async (feed: string) => {
  const rows = await bench.rows(sql<{ id: string }>`SELECT scan_id AS id FROM ${tables.runs} WHERE feed = ${feed}`);
  return rows.map(({ id }) => id);
};

describe.each([
  ['with Content-Length', []],
  ['chunked', [CHUNKED]],
] as const)('answers %s', (name, faults) => {
  it.each<[string, CutManner, number]>([
    ['reset', 'reset', 10_000],
    ['closed', 'end', 10_000],
    ['half-closed', 'half-close', 10_000],
    ['silent', 'silence', 400],
  ])('cut anywhere (%s) leave no half page and no moved cursor, and the feed goes on', async (_, manner, timeoutMs) => {
    const base = { name: `${manner} ${name}`, faults, requestTimeoutMs: timeoutMs };
    const { answered } = await session(base);
    const kinds = new Map<string, number>();
    const at = Array.from({ length: PLACES }, (_, place) => Math.floor(((place + 0.5) * answered) / PLACES));
    await Promise.all(
      at.map(async (bytes) => {
        const point = afterBytes('server', bytes); // counted over all connections
        const begin = (proxy: TcpProxy) => void proxy.cutOnce(() => point, manner);
        const { followed } = await session({ ...base, begin });
        for (const failure of followed.failures) kinds.set(failure, (kinds.get(failure) ?? 0) + 1);
      }),
    );
    console.info(`${manner}, ${name}: ${JSON.stringify(Object.fromEntries(kinds))}`);
    expect([...kinds.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(PLACES * 0.7);
  });
});

describe('a service', () => {
  it('that drips more slowly than the request may take is given up until it is well again', async () => {
    const { followed, pagesStored } = await session({
      name: 'drip',
      requestTimeoutMs: 400,
      begin: (proxy) => proxy.set({ drip: { bytes: 16, everyMs: 10 } }),
      onFirstFailure: (proxy) => proxy.heal(),
    });
    expect(followed.failures[0]).toBe('feed timeout');
    expect([pagesStored[0], pagesStored.at(-1)]).toEqual([0, PAGES]);
  });

  it('that takes requests and answers nothing is given up until it is well again', async () => {
    const { followed, pagesStored } = await session({
      name: 'blackhole',
      requestTimeoutMs: 400,
      begin: (proxy) => proxy.set({ blackhole: true }),
      onFirstFailure: (proxy) => proxy.heal(),
    });
    expect(followed.failures[0]).toBe('feed timeout');
    expect([pagesStored[0], pagesStored.at(-1)]).toEqual([0, PAGES]);
  });
});
