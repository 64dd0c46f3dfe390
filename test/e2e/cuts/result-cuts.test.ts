import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import { type FaultInput, startEmulator } from '../../../src/emulator/index.js';
import { RecognitionClient } from '../../../src/library/recognition-client.js';
import { followToTheEnd } from '../../support/follow-to-the-end.js';
import { inResponseTo, RESPONSE_POSITIONS, type ResponsePosition } from '../../support/http-cuts.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { type CutKind, TcpProxy } from '../../support/tcp-proxy.js';
import { watchUncaught } from '../../support/uncaught.js';

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);
const uncaught = watchUncaught();
afterEach(() => expect(uncaught).toEqual([]));

const RUNS = 3;
const SINGLE_RUN = /^GET \S+\/scans\/[^?\s]+/;
/** Bodies without a Content-Length. */
const CHUNKED: FaultInput = { kind: 'slow', operation: 'run', chunked: true, dripBytes: 4096, dripMs: 0 };

let setups = 0;

/** Starts a feed of truncated results behind a proxy. Returns functions that follow it and read what is stored. */
async function setUp(requestTimeoutMs: number, faults: readonly FaultInput[]) {
  setups += 1;
  const seed = 4_000 + setups; // so that no two share a scan id
  const emulator = await startEmulator({ seed, switches: { faults: [...faults] } });
  const versions = emulator.appendCount(RUNS, { truncated: 'data' });
  const proxy = await TcpProxy.to(emulator.url);
  const { apiKey } = emulator;
  const open = (baseUrl: string) => new RecognitionClient({ baseUrl, apiKey, requestTimeoutMs });
  const [cut, direct] = [open(proxy.urlOf(emulator.url)), open(emulator.url)];
  const scans = versions.map(({ scanId }) => scanId).sort();
  const followAs = async (name: string) => {
    const { failures } = await followToTheEnd({ url: provided.url, feed: `${name} ${seed}`, service: cut });
    expect(failures).toEqual([]);
  };
  const stored = () =>
    setup.rows(sql<{ id: string; state: string; reason: string | null; data: unknown }>`
      SELECT scan_id AS id, result_state AS state, pending_reason AS reason, data
      FROM ${tables.runs} WHERE scan_id IN (${sql.join(scans)}) ORDER BY scan_id`);
  const complete = async () => {
    const runs = await Promise.all(scans.map((scanId) => direct.getRun(scanId)));
    return runs.map((run) => ({
      id: run.scanId,
      state: 'complete',
      reason: null,
      data: 'data' in run ? run.data : null,
    }));
  };
  const pending = () => scans.map((id) => ({ id, state: 'pending', reason: 'not_loaded', data: null }));
  const close = () => Promise.all([cut.close(), direct.close(), proxy.close(), emulator.close()]);
  return { proxy, followAs, stored, complete, pending, close };
}

describe('loading a full result', () => {
  it.each<[ResponsePosition, CutKind, number]>([
    ...RESPONSE_POSITIONS.map((position): [ResponsePosition, CutKind, number] => [position, 'reset', 10_000]),
    ['within the body', 'silence', 1_000],
  ])('succeeds on a retry when the connection is cut once, %s (%s)', async (position, kind, requestTimeoutMs) => {
    const { proxy, followAs, stored, complete, close } = await setUp(requestTimeoutMs, []);
    const cut = proxy.cutOnce(() => inResponseTo(SINGLE_RUN, position), kind);
    await followAs('once');
    await cut;
    expect(await stored()).toEqual(await complete());
    await close();
  });

  it.each<[ResponsePosition, string, readonly FaultInput[]]>([
    ...RESPONSE_POSITIONS.map((position): [ResponsePosition, string, FaultInput[]] => [
      position,
      'with Content-Length',
      [],
    ]),
    ['before its end', 'chunked', [CHUNKED]],
  ])(
    'leaves the runs pending until they are delivered again when the connection is cut every time, %s (%s)',
    async (position, _, faults) => {
      const { proxy, followAs, stored, complete, pending, close } = await setUp(10_000, faults);
      proxy.cutEach(() => inResponseTo(SINGLE_RUN, position), 'end');
      await followAs('each');
      expect(await stored()).toEqual(pending());
      proxy.heal();
      await followAs('again');
      expect(await stored()).toEqual(await complete());
      await close();
    },
  );
});
