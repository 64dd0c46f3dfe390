import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import { type Emulator, type FaultInput, startEmulator } from '../../../src/emulator/index.js';
import { ServiceClient } from '../../../src/service/client.js';
import { type Followed, followToTheEnd } from '../../support/follow-to-the-end.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { afterBytes, type CutKind, TcpProxy } from '../../support/tcp-proxy.js';
import { watchUncaught } from '../../support/uncaught.js';

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);
const uncaught = watchUncaught();
afterEach(() => expect(uncaught).toEqual([]));

const PAGES = 3;
const PAGE = 20;
/** Number of cuts, spread evenly over the bytes of the service's answers. */
const CUTS = 12;
/** Bodies without a Content-Length. */
const CHUNKED: FaultInput = { kind: 'slow', operation: 'feed', chunked: true, dripBytes: 4096, dripMs: 0 };

interface Session {
  readonly followed: Followed;
  /** Bytes that the service sent. */
  readonly answered: number;
  /** Number of whole pages in the database at each failure and at the end. */
  readonly pagesStored: readonly number[];
}

interface Disruption {
  readonly name: string;
  readonly faults?: readonly FaultInput[];
  readonly requestTimeoutMs?: number;
  /** Called before the session begins. */
  readonly begin?: (proxy: TcpProxy) => void;
  /** Called at the first failure. */
  readonly onFirstFailure?: (proxy: TcpProxy) => void;
}

let sessions = 0;

/** Follows a feed of three pages through a faulty proxy, and checks the database at each failure. */
async function session(disruption: Disruption): Promise<Session> {
  sessions += 1;
  const seed = sessions; // so that no two sessions share a scan id
  const emulator = await startEmulator({ seed, switches: { faults: [...(disruption.faults ?? [])] } });
  emulator.appendCount(PAGES * PAGE);
  const proxy = await TcpProxy.to(emulator.url);
  const client = new ServiceClient({
    baseUrl: proxy.urlOf(emulator.url),
    apiKey: emulator.apiKey,
    requestTimeoutMs: disruption.requestTimeoutMs ?? 10_000,
  });
  const pagesBefore = countPagesBefore(emulator);
  const checks: Promise<number>[] = [];
  const feed = `${disruption.name}-${seed}`;
  const check = () => {
    const pages = wholePages(feed, pagesBefore);
    checks.push(pages);
    return pages;
  };
  let failures = 0;
  try {
    disruption.begin?.(proxy);
    const followed = await followToTheEnd({
      url: provided.url,
      feed,
      service: client,
      context: { pageSize: PAGE },
      onFailed: () => {
        failures += 1;
        const heal = failures === 1 ? () => disruption.onFirstFailure?.(proxy) : undefined;
        check().then(heal, heal); // only after the check: the next page may be stored at once
      },
    });
    check();
    const expected = [...emulator.entries()].map((entry) => ('version' in entry ? entry.version.scanId : ''));
    expect((await storedScans(feed)).sort()).toEqual(expected.sort());
    const answered = proxy.connections.reduce((sum, { passed }) => sum + passed.server, 0);
    return { followed, answered, pagesStored: await Promise.all(checks) };
  } finally {
    await client.close();
    await proxy.close();
    await emulator.close();
  }
}

/** Returns the number of pages before each issued cursor, as it grows. */
function countPagesBefore(emulator: Emulator): ReadonlyMap<string | null, number> {
  const pages = new Map<string | null, number>([[null, 0]]);
  emulator.requests.observe(({ query, served, nextCursor }) => {
    const before = pages.get((query.cursor as string | undefined) ?? null) ?? 0;
    if (nextCursor !== null && !pages.has(nextCursor)) pages.set(nextCursor, before + (served.length > 0 ? 1 : 0));
  });
  return pages;
}

/** Returns the number of whole pages in the database. Fails unless it holds exactly the entries before its cursor. */
async function wholePages(feed: string, pagesBefore: ReadonlyMap<string | null, number>): Promise<number> {
  const [row] = await setup.rows(sql<{ cursor: string | null; stored: number }>`
    SELECT cursor, (SELECT count(*)::int FROM ${tables.runs} WHERE feed = name) AS stored
    FROM ${tables.feeds} WHERE name = ${feed}`);
  const pages = pagesBefore.get(row?.cursor ?? null);
  expect(row?.stored).toBe((pages ?? Number.NaN) * PAGE);
  return pages as number;
}

const storedScans = async (feed: string) => {
  const rows = await setup.rows(sql<{ id: string }>`SELECT scan_id AS id FROM ${tables.runs} WHERE feed = ${feed}`);
  return rows.map(({ id }) => id);
};

describe.each([
  ['with Content-Length', []],
  ['chunked', [CHUNKED]],
] as const)('feed answers (%s)', (name, faults) => {
  it.each<[string, CutKind, number]>([
    ['reset', 'reset', 10_000],
    ['closed', 'end', 10_000],
    ['half-closed', 'half-close', 10_000],
    ['silent', 'silence', 400],
  ])(
    'leave no partial page and no advanced cursor, and the feed continues, when they are cut anywhere (%s)',
    async (_, kind, timeoutMs) => {
      const base = { name: `${kind} ${name}`, faults, requestTimeoutMs: timeoutMs };
      const { answered } = await session(base);
      const kinds = new Map<string, number>();
      const at = Array.from({ length: CUTS }, (_, place) => Math.floor(((place + 0.5) * answered) / CUTS));
      await Promise.all(
        at.map(async (bytes) => {
          const point = afterBytes('server', bytes); // counted over all connections
          const begin = (proxy: TcpProxy) => void proxy.cutOnce(() => point, kind);
          const { followed } = await session({ ...base, begin });
          for (const failure of followed.failures) kinds.set(failure, (kinds.get(failure) ?? 0) + 1);
        }),
      );
      console.info(`${kind}, ${name}: ${JSON.stringify(Object.fromEntries(kinds))}`);
      expect([...kinds.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(CUTS * 0.7);
    },
  );
});

describe('a feed request', () => {
  it('times out until the service recovers when the answer drips too slowly', async () => {
    const { followed, pagesStored } = await session({
      name: 'drip',
      requestTimeoutMs: 400,
      begin: (proxy) => proxy.set({ drip: { bytes: 16, everyMs: 10 } }),
      onFirstFailure: (proxy) => proxy.heal(),
    });
    expect(followed.failures[0]).toBe('feed timeout');
    expect([pagesStored[0], pagesStored.at(-1)]).toEqual([0, PAGES]);
  });

  it('times out until the service recovers when it accepts requests without answering', async () => {
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
