import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { type EmulatorOptions, type RunSpec, startEmulator } from '../../src/emulator/index.js';
import { type FollowOptions, followFeed, RecognitionClient, type WaitedOut } from '../../src/index.js';
import { hastyClock } from '../support/command.js';
import { entryFields, entryJson, raw } from '../support/entries.js';
import { VARIOUS_FILTERS } from '../support/filters.js';
import { watchEmulator } from '../support/openapi/watch-emulator.js';

const undos: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of undos.splice(0).reverse()) await undo();
});

async function all<T>(given: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const each of given) list.push(each);
  return list;
}

async function open(
  options: Partial<EmulatorOptions> = {},
  client: { maxResponseBytes?: number; apiKey?: string } = {},
) {
  const emulator = await startEmulator({
    history: 0,
    ...options,
    switches: { truncatedShare: 0, ...options.switches },
  });
  undos.push(() => emulator.close());
  const service = new RecognitionClient({ baseUrl: emulator.url, apiKey: emulator.apiKey, ...client });
  undos.push(() => service.close());
  const failures: WaitedOut[] = [];
  const follow = (more: FollowOptions = {}) =>
    followFeed(service, { clock: hastyClock, environment: 'all', onFailure: (it) => failures.push(it), ...more });
  const toTheEnd = async (more: FollowOptions = {}) => {
    const pages = await all(follow({ untilEnd: true, ...more }));
    const scanIds = pages.flatMap(({ entries }) => entries.map(({ scanId }) => scanId));
    return { pages, scanIds, cursor: pages.at(-1)?.cursor ?? null };
  };
  return { emulator, service, failures, follow, toTheEnd };
}

describe('followFeed', () => {
  it.each(['stable', 'moving'] as const)(
    'returns every entry when cursors are %s, and continues from a stored cursor',
    async (cursors) => {
      const { emulator, toTheEnd, follow } = await open({ history: 450, switches: { cursors } });
      const whole = await toTheEnd({ limit: 100 });
      expect(new Set(whole.scanIds).size).toBe(450);
      expect(whole.pages.map(({ entries, atEnd }) => [entries.length, atEnd])).toEqual([
        ...Array.from({ length: 4 }, () => [100, false]),
        [50, false],
        [0, true],
      ]);
      const [added] = emulator.appendCount(1);
      expect((await toTheEnd({ cursor: whole.cursor })).scanIds).toEqual([added?.scanId]);
      for await (const { cursor } of follow({ limit: 100 })) {
        expect((await toTheEnd({ cursor })).scanIds).toEqual([...whole.scanIds.slice(100), added?.scanId]);
        break;
      }
    },
  );

  it('waits at the end for new entries, and stops when the signal aborts', async () => {
    const { emulator, follow } = await open({ history: 3 });
    const stop = new AbortController();
    const seen: number[] = [];
    for await (const { entries, atEnd } of follow({ signal: stop.signal })) {
      seen.push(entries.length);
      if (atEnd && seen.length < 4) emulator.appendCount(2);
      else if (atEnd) stop.abort();
    }
    expect(seen).toEqual([3, 0, 2, 0]);
    expect(await all(follow({ signal: stop.signal }))).toEqual([]);
  });

  it('cancels a running request when the signal aborts', async () => {
    const { emulator, follow } = await open({ history: 3 });
    emulator.addFault({ kind: 'hang' });
    const stop = new AbortController();
    void emulator.requests.next().then(() => stop.abort());
    expect(await all(follow({ signal: stop.signal }))).toEqual([]);
  });

  it('retries temporary failures and reports them', async () => {
    const { emulator, failures, toTheEnd } = await open({ history: 5 });
    emulator.addFault({ kind: 'status', status: 503, next: 2 });
    emulator.addFault({ kind: 'cut', next: 1 });
    expect((await toTheEnd()).scanIds).toHaveLength(5);
    expect(failures.map(({ error, failures: inARow }) => [error.kind, inARow])).toEqual([
      ['http_503', 1],
      ['http_503', 2],
      ['cut_body', 3],
    ]);
  });

  it('throws other failures unless waitOut accepts them', async () => {
    const { toTheEnd, failures, emulator } = await open({ history: 5 });
    await expect(toTheEnd({ cursor: 'nonsense' })).rejects.toMatchObject({ kind: 'http_400', action: 'hold' });
    emulator.addFault({ kind: 'status', status: 401, next: 2 });
    await expect(toTheEnd()).rejects.toMatchObject({ kind: 'http_401' });
    expect((await toTheEnd({ waitOut: ({ kind }) => kind === 'http_401' })).scanIds).toHaveLength(5);
    expect(failures).toHaveLength(1);
    await expect(toTheEnd({ limit: 201 })).rejects.toMatchObject({ kind: 'invalid_argument' });
    await expect(toTheEnd({ pollIntervalMs: Number.NaN })).rejects.toMatchObject({ kind: 'invalid_argument' });
  });

  it('throws an error that is not a failure of the service', async () => {
    const broken = { readPage: () => Promise.reject(new TypeError('broken')) };
    await expect(followFeed(broken, { waitOut: () => true }).next()).rejects.toThrow('broken');
  });

  it('returns an unusable entry separately from the others', async () => {
    const { emulator, toTheEnd } = await open();
    emulator.appendRaw([
      entryJson({ scanId: 'a' }),
      entryJson({ scanId: 'b', revision: 0 }),
      '7',
      entryJson({ scanId: 'c' }),
      `{"revision":1,${entryJson({ scanId: 'd', revision: 2 }).slice(1)}`,
    ]);
    const { pages, scanIds } = await toTheEnd();
    expect(scanIds).toEqual(['a', 'c']);
    expect(pages[0]?.unusable).toMatchObject([
      { index: 1, reason: 'revision', detail: expect.stringContaining('integer'), entry: { scanId: 'b' } },
      { index: 2, reason: 'not_an_object', entry: 7 },
      { index: 4, reason: 'repeated_field', detail: 'repeated: revision' },
    ]);
  });

  it('returns the long values of large pages, and the bytes with every digit', async () => {
    const { emulator, toTheEnd } = await open();
    const text = 'long '.repeat(300_000);
    emulator.appendRaw([entryJson({ scanId: 'a', data: { text, n: raw('1.10') } })]);
    const [page] = (await toTheEnd()).pages;
    expect(page?.entries[0]).toMatchObject({ data: { text, n: 1.1 } });
    expect(Buffer.from(page?.body ?? []).includes('"n":1.10')).toBe(true);
  });

  it('requests smaller pages when pages are too large', async () => {
    const { toTheEnd } = await open({ history: 40 }, { maxResponseBytes: 20_000 });
    expect((await toTheEnd({ limit: 40 })).scanIds).toHaveLength(40);
    const small = await open({ history: 1 }, { maxResponseBytes: 100 });
    await expect(small.toTheEnd()).rejects.toMatchObject({ kind: 'too_large' });
  });

  it.each(['missing-cursor', 'empty-cursor', 'stuck-cursor'] as const)(
    'never returns a cursor that leads nowhere (%s)',
    async (kind) => {
      const { emulator, follow } = await open({ history: 9 });
      const pages = follow({ limit: 3 });
      const first = (await pages.next()).value;
      emulator.addFault({ kind, next: 1 });
      const second = (await pages.next()).value;
      expect(second).toMatchObject({ cursor: first?.cursor, entries: { length: 3 } });
      const again = (await pages.next()).value;
      // A full page without a cursor is requested again with a higher limit.
      expect(again?.entries).toHaveLength(kind === 'missing-cursor' ? 6 : 3);
      expect(again?.entries.slice(0, 3)).toEqual(second?.entries);
      expect(again?.cursor).not.toBe(first?.cursor);
      await pages.return();
    },
  );
});

describe('RecognitionClient', () => {
  it.each(VARIOUS_FILTERS)('reads the runs that the service lists with filters: %s', async (_, filters, isListed) => {
    const { emulator, service } = await open();
    const { differences } = watchEmulator(emulator, { strict: true });
    const { documentType, data, resultTruncated, ...fields } = entryFields();
    emulator.appendRun({ ...fields, documentType: (documentType as { slug: string }).slug } as RunSpec);
    expect((await service.feedPage(filters)).entries).toHaveLength(isListed ? 1 : 0);
    expect(differences).toEqual([]);
  });

  it('reads one page with its cursor, from which the next one continues', async () => {
    const { emulator, service } = await open({ history: 5 });
    const first = await service.feedPage({ environment: 'all', limit: 3 });
    expect(first.entries).toHaveLength(3);
    expect(Buffer.from(first.body).toString()).toContain(first.entries[0]?.scanId);
    const rest = await service.feedPage({ environment: 'all', cursor: first.cursor });
    expect(rest.entries).toHaveLength(2);
    emulator.addFault({ kind: 'missing-cursor', next: 1 });
    expect((await service.feedPage({ cursor: null, since: null })).cursor).toBeNull();
  });

  it('loads a truncated run in full', async () => {
    const { emulator, service } = await open();
    const text = 'long '.repeat(300_000);
    const [added] = emulator.appendRuns([{ data: { text }, truncated: 'data' }]);
    const [entry] = (await service.feedPage()).entries;
    expect(entry).toMatchObject({ scanId: added?.scanId, resultTruncated: true, data: null });
    expect(await service.getRun(added?.scanId ?? '')).toMatchObject({
      data: { text },
      rawOcrResult: expect.anything(),
    });
  });

  it('refuses another run, and one that does not match the interface', async () => {
    const { emulator, service } = await open();
    emulator.answerRun('scan-2', { body: entryJson({ scanId: 'scan-1' }) });
    emulator.answerRun('scan-3', { body: entryJson({ scanId: 'scan-3', revision: 'canary-value' }) });
    await expect(service.getRun('scan-2')).rejects.toThrow(
      'but the run does not match the interface: scanId (another run); ',
    );
    const error = await service.getRun('scan-3').catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      kind: 'wrong_shape',
      message: expect.stringContaining(', but the run does not match'),
    });
    expect(String(error)).not.toContain('canary');
  });
});

describe('waitForRun', () => {
  /** A client that notes its pauses instead of waiting; its requests have the clock of the machine. */
  async function impatient(apiKey?: string) {
    const { emulator } = await open();
    const pauses: number[] = [];
    class ImpatientClient extends RecognitionClient {
      protected override readonly clock = {
        ...systemClock,
        sleep: async (ms: number) => {
          pauses.push(ms);
        },
      };
    }
    const client = new ImpatientClient({ baseUrl: emulator.url, apiKey: apiKey ?? emulator.apiKey });
    undos.push(() => client.close());
    return { emulator, client, pauses };
  }
  const processing = entryJson({ scanId: 'scan', status: 'processing', data: undefined });
  const completed = entryJson({ scanId: 'scan' });

  it('returns the run once it is recognized, with growing pauses before', async () => {
    const { emulator, client, pauses } = await impatient();
    emulator.answerRun('scan', { body: processing, times: 6 });
    emulator.answerRun('scan', { body: completed });
    expect(await client.waitForRun('scan')).toMatchObject({ scanId: 'scan', status: 'completed' });
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  });

  it('pauses for as long as the service asks when it is busy', async () => {
    const { emulator, client, pauses } = await impatient();
    emulator.answerRun('scan', { body: completed });
    emulator.addFault({ kind: 'status', status: 429, retryAfter: 17, operation: 'run', next: 1 });
    await client.waitForRun('scan');
    expect(pauses).toEqual([17_000]);
  });

  it('gives up after about two minutes when the id is unknown, as long as its error says that retries make sense', async () => {
    const { client, pauses } = await impatient();
    await expect(client.waitForRun('unknown')).rejects.toMatchObject({ kind: 'http_404', retryForMs: 120_000 });
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBe(115_000);
  });

  it('returns a run that is unknown at first, which getRun does not call temporary', async () => {
    const { emulator, client, pauses } = await impatient();
    emulator.answerRun('scan', { status: 404, body: '{"error":"Unbekannt."}', times: 3 });
    emulator.answerRun('scan', { body: completed });
    await expect(client.getRun('scan')).rejects.toMatchObject({ kind: 'http_404', action: 'reject' });
    expect(await client.waitForRun('scan')).toMatchObject({ status: 'completed' });
    expect(pauses).toEqual([1_000, 2_000]);
  });

  it('gives up at once when the key is rejected', async () => {
    const { client, pauses } = await impatient('another-key');
    await expect(client.waitForRun('scan')).rejects.toMatchObject({ kind: 'http_401' });
    expect(pauses).toEqual([]);
  });

  it('ends with the reason of the signal when it aborts during a pause', async () => {
    const { emulator, service } = await open();
    emulator.answerRun('scan', { body: processing });
    const stop = new AbortController();
    const waiting = service.waitForRun('scan', { signal: stop.signal });
    setImmediate(() => stop.abort(new Error('no longer wanted')));
    await expect(waiting).rejects.toThrow('no longer wanted');
  });

  it('ends when the client is closed during a pause', async () => {
    const { emulator } = await open();
    emulator.addFault({ kind: 'status', status: 429, retryAfter: 3_600, operation: 'run', next: 1 });
    class ClosedClient extends RecognitionClient {
      protected override readonly clock = {
        ...systemClock,
        sleep: (ms: number, signal: AbortSignal) => {
          void this.close();
          return systemClock.sleep(ms, signal);
        },
      };
    }
    const client = new ClosedClient({ baseUrl: emulator.url, apiKey: emulator.apiKey });
    await expect(client.waitForRun('scan')).rejects.toMatchObject({ kind: 'closed' });
  });

  it('refuses a signal in place of the options', async () => {
    const { service } = await open();
    await expect(service.waitForRun('scan', new AbortController().signal as never)).rejects.toMatchObject({
      kind: 'invalid_argument',
    });
  });
});
