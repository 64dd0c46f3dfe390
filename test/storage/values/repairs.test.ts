import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { RepeatedField } from '../../../src/core/json/skip-large-values.js';
import { entryJson, pageJson, raw } from '../../support/entries.js';
import { runRow, tables, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';
import { deliver } from './deliver.js';

const setup = useStore();
let scans = 0;
const newScan = () => {
  scans += 1;
  return `scan-${scans}`;
};

interface Kept {
  readonly state: string;
  readonly reason: string;
  readonly payload: Buffer;
  readonly times_seen: number;
  readonly scan_id: string | null;
  readonly revision: number | null;
}
const keptOf = (payload: Buffer) =>
  setup.rows(sql<Kept>`SELECT * FROM ${tables.quarantine} WHERE payload = ${payload}`);
const systemColumns = (scanId: string) =>
  setup.rows(sql`SELECT xmin::text, xmax::text, ctid::text FROM ${tables.runs} WHERE scan_id = ${scanId}`);

/** Replaces each `?` by a byte that is invalid in UTF-8. */
const withInvalidByte = (text: string) => Buffer.from(text.replace('?', '\x80'), 'latin1');
const NUL = raw('"a\\u0000b"');
const LONE = raw('"a\\uD83Db"');

describe('an entry with text that PostgreSQL cannot store', () => {
  it.each<[string, (scanId: string) => string | Buffer, Record<string, unknown>]>([
    ['U+0000 in the data', (scanId) => entryJson({ scanId, data: { t: NUL } }), { data: '{"t": "a\ufffdb"}' }],
    [
      'a lone surrogate in the data',
      (scanId) => entryJson({ scanId, data: { t: LONE } }),
      { data: '{"t": "a\ufffdb"}' },
    ],
    [
      'U+0000 in a name',
      (scanId) => entryJson({ scanId, data: raw('{"a\\u0000":1.10}') }),
      { data: '{"a\ufffd": 1.10}' },
    ],
    [
      'a lone surrogate in a name',
      (scanId) => entryJson({ scanId, data: raw('{"\\udc00":1.10}') }),
      { data: '{"\ufffd": 1.10}' },
    ],
    [
      'names that become equal',
      (scanId) => entryJson({ scanId, data: raw('{"a\\u0000":1,"a\\ud800":2}') }),
      { data: '{"a\ufffd": 2}' },
    ],
    ['U+0000 in the file name', (scanId) => entryJson({ scanId, fileName: NUL }), { file_name: 'a\ufffdb' }],
    [
      'a lone surrogate in the slug',
      (scanId) => entryJson({ scanId, documentType: { slug: LONE, name: NUL } }),
      { document_type_slug: 'a\ufffdb', document_type_name: 'a\ufffdb' },
    ],
    ['U+0000 in an unknown field', (scanId) => entryJson({ scanId, neu: NUL }), { extra: '{"neu": "a\ufffdb"}' }],
    [
      'U+0000 after a name of the interface',
      (scanId) => `${entryJson({ scanId }).slice(0, -1)},"status\\u0000":"failed"}`,
      { status: 'completed', extra: '{"status\ufffd": "failed"}' },
    ],
    [
      'invalid UTF-8 in the data',
      (scanId) => withInvalidByte(entryJson({ scanId, data: { t: 'a?b' } })),
      { data: '{"t": "a\ufffdb"}' },
    ],
    [
      'invalid UTF-8 in a name',
      (scanId) => withInvalidByte(entryJson({ scanId, data: { 'a?': raw('1.10') } })),
      { data: '{"a\ufffd": 1.10}' },
    ],
    [
      'invalid UTF-8 in the file name',
      (scanId) => withInvalidByte(entryJson({ scanId, fileName: 'a?b' })),
      { file_name: 'a\ufffdb' },
    ],
    [
      'U+0000 in a text and in an invalid time',
      (scanId) => entryJson({ scanId, status: 'failed', data: null, error: NUL, completedAt: 'gestern\u0000' }),
      { error: 'a\ufffdb', completed_at: null, extra: '{"completedAt": "gestern\ufffd"}' },
    ],
  ])('is stored repaired, with its original in quarantine, when it has %s', async (_what, write, expected) => {
    const scanId = newScan();
    const entry = Buffer.from(write(scanId));
    const [before, after] = [newScan(), newScan()];
    const body = Buffer.concat([
      Buffer.from(`{"items":[${entryJson({ scanId: before })},`),
      entry,
      Buffer.from(`,${entryJson({ scanId: after })}],"nextCursor":"n"}`),
    ]);
    expect(await deliver(setup, body)).toMatchObject({ inserted: 3 });
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ ...expected, repaired: true });
    for (const neighbour of [before, after]) {
      expect((await setup.rows(runRow(neighbour)))[0]).toMatchObject({ repaired: false });
    }
    expect(await keptOf(entry)).toMatchObject([{ state: 'repaired', scan_id: scanId, revision: 1, times_seen: 1 }]);

    // A second delivery only raises `times_seen`.
    const stored = await systemColumns(scanId);
    expect(await deliver(setup, body)).toMatchObject({
      inserted: 0,
      updated: 0,
      filled: 0,
      unchanged: 3,
      conflicts: 0,
      stored: [],
    });
    expect(await systemColumns(scanId)).toEqual(stored);
    expect(await keptOf(entry)).toMatchObject([{ state: 'repaired', times_seen: 2 }]);
  });
});

// Two repaired scan ids could become equal.
describe('a scan id', () => {
  it.each<[string, Buffer, Buffer]>([
    ['U+0000', Buffer.from(entryJson({ scanId: NUL })), Buffer.from(entryJson({ scanId: LONE }))],
    [
      'invalid UTF-8',
      Buffer.from(entryJson({ scanId: 'x\x80' }), 'latin1'),
      Buffer.from(entryJson({ scanId: 'x\x81' }), 'latin1'),
    ],
  ])('is quarantined, never repaired, when it has %s', async (_what, one, two) => {
    const body = Buffer.concat([Buffer.from('{"items":['), one, Buffer.from(','), two, Buffer.from(']}')]);
    expect(await deliver(setup, body)).toMatchObject({ inserted: 0, quarantined: 2 });
    expect(await deliver(setup, body)).toMatchObject({ inserted: 0, quarantined: 2 });
    for (const entry of [one, two]) {
      expect(await keptOf(entry)).toMatchObject([{ state: 'open', reason: 'scan_id', scan_id: null, times_seen: 2 }]);
    }
  });

  it('is stored unchanged when U+FFFD was sent', async () => {
    const scanId = `${newScan()}\ufffd`;
    const entry = Buffer.from(entryJson({ scanId, partnerName: 'a\x80' }), 'utf8');
    const body = Buffer.concat([Buffer.from('{"items":['), entry, Buffer.from('],"x":"\x80"}', 'latin1')]);
    expect(await deliver(setup, body)).toMatchObject({ inserted: 1, quarantined: 0 });
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ repaired: false });
  });
});

describe('an entry that has a field of the interface twice', () => {
  it.each<[string, (entry: string) => string, { scan_id?: null; revision?: null }]>([
    ['the first value differs', (entry) => `{"fileName":"zuerst",${entry.slice(1)}`, {}],
    ['one name is written with escapes', (entry) => `${entry.slice(0, -1)},"file\\u004eame":"zuletzt"}`, {}],
    [
      'a valid value follows an invalid one',
      (entry) => `{"revision":"x","status":7,${entry.slice(1)}`,
      { revision: null },
    ],
    ['an invalid value follows a valid one', (entry) => `${entry.slice(0, -1)},"revision":null}`, { revision: null }],
    ['two optional values are invalid', (entry) => `${entry.slice(0, -1)},"error":1,"error":2}`, {}],
    ['it has two scan ids', (entry) => `${entry.slice(0, -1)},"sc\\u0061nId":"another"}`, { scan_id: null }],
  ])('is quarantined whole when %s', async (_what, change, unknown) => {
    const [scanId, neighbour] = [newScan(), newScan()];
    const entry = change(entryJson({ scanId }));
    const counts = await deliver(setup, pageJson([entry, entryJson({ scanId: neighbour })]));
    expect(counts).toMatchObject({ inserted: 1, quarantined: 1, stored: [neighbour] });
    const expected = { state: 'open', reason: 'repeated_field', scan_id: scanId, revision: 1, ...unknown };
    expect(await keptOf(Buffer.from(entry))).toMatchObject([expected]);
    expect(await setup.rows(sql`SELECT FROM ${tables.runs} WHERE scan_id IN (${scanId}, 'another')`)).toEqual([]);
  });

  it('is stored with the last value when only an unknown field repeats', async () => {
    const scanId = newScan();
    await deliver(setup, pageJson([`${entryJson({ scanId }).slice(0, -1)},"neu":1,"n\\u0065u":2.0}`]));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ extra: '{"neu": 2.0}', repaired: false });
  });
});

describe('a list of entries', () => {
  it('is stored up to its last entry when it has unusable and repaired ones', async () => {
    const [first, second] = [newScan(), newScan()];
    const repaired = entryJson({ scanId: second, fileName: NUL });
    const hidden = entryJson({ scanId: newScan(), data: { n: raw('1e400000') } });
    await deliver(setup, `\ufeff{"more":[${hidden}],"it\\u0065ms":[${entryJson({ scanId: first })},7,${repaired}]}`);
    expect(await setup.rows(runRow(first))).toHaveLength(1);
    expect((await setup.rows(runRow(second)))[0]).toMatchObject({ file_name: 'a\ufffdb' });
    expect(await keptOf(Buffer.from(repaired))).toMatchObject([{ state: 'repaired' }]);
    expect(await keptOf(Buffer.from(hidden))).toEqual([]);
  });

  it('is refused with its page when there are two, since the entries of one would be lost', async () => {
    const [first, second] = [newScan(), newScan()];
    const { lease } = await setup.takeFeed();
    const before = await setup.store.readPosition(lease.feed);
    const page = `{"items":[${entryJson({ scanId: first })}],"it\\u0065ms":[${entryJson({ scanId: second })}]}`;
    await expect(deliver(setup, page)).rejects.toThrow(RepeatedField);
    expect(await setup.rows(sql`SELECT FROM ${tables.runs} WHERE scan_id IN (${first}, ${second})`)).toEqual([]);
    expect(await setup.store.readPosition(lease.feed)).toEqual(before);
  });
});

describe('a page with an unknown member', () => {
  it.each([
    ['U+0000', '"\\u0000"'],
    ['a number that PostgreSQL refuses', '1e400000'],
    ['nesting beyond the stack', `${'['.repeat(50_000)}${']'.repeat(50_000)}`],
    ['millions of array elements', `[${'1,'.repeat(cases(1_000_000, 17_000_000))}1]`],
  ])('is stored when the member has %s', async (_what, value) => {
    const scanId = newScan();
    await deliver(setup, `{"vorher":${value},"items":[${entryJson({ scanId })}],"nextCursor":"n"}`);
    expect(await setup.rows(runRow(scanId))).toHaveLength(1);
  });
});

it.each(['null', '17', '"text"', '[]', '[{"scanId":"x"}]', 'true', '{}', '{"__proto__":{"scanId":"x","revision":1}}'])(
  'quarantines an entry whole, and recognizes it later, when it is %s',
  async (entry) => {
    const scanId = newScan();
    expect(await deliver(setup, pageJson([entry, entryJson({ scanId }), entry]))).toMatchObject({
      inserted: 1,
      quarantined: 1,
    });
    await deliver(setup, pageJson([entry]));
    expect(await keptOf(Buffer.from(entry))).toMatchObject([{ state: 'open', times_seen: 2, scan_id: null }]);
    expect(await setup.rows(runRow(scanId))).toHaveLength(1);
  },
);

it('stores a field like any other when it is named __proto__', async () => {
  const scanId = newScan();
  const entry = `${entryJson({ scanId, data: raw('{"__proto__":{"a":1.10}}') }).slice(0, -1)},"__proto__":{"status":"failed","x":1.10}}`;
  await deliver(setup, pageJson([entry]));
  expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
    status: 'completed',
    data: '{"__proto__": {"a": 1.10}}',
    extra: '{"__proto__": {"x": 1.10, "status": "failed"}}',
    repaired: false,
  });
  expect(({} as { status?: unknown }).status).toBeUndefined();
});
