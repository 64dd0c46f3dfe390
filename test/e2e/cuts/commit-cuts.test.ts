import { describe, expect, it } from 'vitest';
import { followToTheEnd } from '../../support/follow-to-the-end.js';
import { useDatabase } from '../../support/postgres/index.js';
import { atMessage, type Message, type MessagePart } from '../../support/postgres-messages.js';
import { readSmallFeed, smallFeed, storedOnce } from '../../support/small-feed.js';
import { MIGRATED, useStore } from '../../support/store.js';
import { type CutKind, TcpProxy } from '../../support/tcp-proxy.js';
import { watchUncaught } from '../../support/uncaught.js';

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);

const uncaught = watchUncaught();

/** Number of cuts tried at the same time, each with its own proxy and feed. */
const AT_ONCE = 8;

interface Tried {
  readonly cutAt: Message | null | undefined;
  /** Whether a commit succeeded although its answer was lost. */
  readonly unconfirmed: boolean;
}

/** Follows a feed whose first connection is cut at its nth message. */
async function tryCut(n: number, part: MessagePart, cutKind: CutKind): Promise<Tried> {
  const feed = smallFeed(`${part}${cutKind}${n}`);
  const proxy = await TcpProxy.to(provided.url);
  try {
    let cutAt: Message | null | undefined;
    const cut = proxy.cutOnce(() => atMessage(n, part, (message) => (cutAt = message)), cutKind);
    // A server detects after some time that its client is gone; here, as soon as the client has given up.
    void cut.then((connection) => connection.closed.then(() => connection.cut('reset')));
    const followed = await followToTheEnd({
      url: proxy.urlOf(provided.url),
      feed: feed.name,
      service: feed.service,
      database: cutKind === 'silence' ? { statementDeadlineMs: 1_000, connectDeadlineMs: 1_000 } : {},
    });
    expect(await readSmallFeed(setup, feed.name), `cut at message ${n}`).toEqual(storedOnce(feed.name));
    if (cutAt !== undefined) {
      await (await cut).closed;
      // Releasing the lease is tried once; every other failed statement is retried on another connection.
      if (followed.failures.length > 0) expect(proxy.connections.length).toBeGreaterThan(1);
    }
    return { cutAt, unconfirmed: followed.inserted < storedOnce(feed.name).runs.length };
  } finally {
    await proxy.close();
  }
}

/** Cuts at message 0, `step`, 2 `step`, … until a session ends before its nth message. */
async function cutEverywhere(part: MessagePart, cutKind: CutKind, step: number): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  for (let n = 0; tried.at(-1)?.cutAt !== undefined || n === 0; n += AT_ONCE * step) {
    const batch = Array.from({ length: AT_ONCE }, (_, i) => tryCut(n + i * step, part, cutKind));
    tried.push(...(await Promise.all(batch)));
  }
  return tried.filter(({ cutAt }) => cutAt !== undefined);
}

describe.each([
  ['whole', 'end', 1],
  ['half', 'reset', 1],
  // Each cut waits for a deadline. A statement has an odd number of messages, so steps of two still reach every kind.
  ['whole', 'silence', 2],
] as const)('a database connection (%s message, %s)', (part, cutKind, step) => {
  it('is replaced, and stores each entry exactly once, when it is cut at any message of a session', {
    timeout: 120_000,
  }, async () => {
    const tried = await cutEverywhere(part, cutKind, step);
    const kinds = new Set(tried.map(({ cutAt }) => (cutAt ? `${cutAt.from} ${cutAt.type}` : 'nothing')));
    const lost = tried.filter(({ unconfirmed }) => unconfirmed).length;
    console.info(`${part} ${cutKind}: ${tried.length} cuts, ${lost} of them after a commit whose answer was lost`);
    // Parse, bind, describe, execute, sync and their answers: the session was cut within its statements.
    for (const kind of [
      'client P',
      'client B',
      'client D',
      'client E',
      'client S',
      'server 1',
      'server 2',
      'server T',
    ]) {
      expect(kinds).toContain(kind);
    }
    for (const kind of ['nothing', 'server R', 'server D', 'server C', 'server Z']) {
      expect(kinds).toContain(kind);
    }
    expect(lost).toBeGreaterThan(0);
    expect(uncaught).toEqual([]);
  });
});
