import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { raw } from '../../support/entries.js';
import { fieldColumns, readAllViews, readView, useDocuments } from '../../support/reports.js';
import { tables, useStore } from '../../support/store.js';
import { IS_THOROUGH } from '../../support/thorough.js';

const setup = useStore();
const { store, build, viewNames } = useDocuments(setup);

describe('names', () => {
  it('need no quotes when keys contain any characters', async () => {
    await store({
      'Fälligkeit am': 1,
      ORDER: 2,
      user: 3,
      '2024': 4,
      日本: 5,
      "it's": 6,
      'a"b\\c': 7,
      scan_id: 8,
      ustId: 9,
      'ähm ': 10,
    });
    await build();
    const columns = (await fieldColumns(setup, 'document_rechnung')).map((text) => text.split(' ')[0] ?? '');
    expect([...columns].sort()).toEqual(
      ['_2024', 'a_b_c', 'aehm', 'data_scan_id', 'faelligkeit_am', 'field', 'it_s', 'order_', 'user_', 'ust_id'].sort(),
    );
    const rows = await setup.rows<Record<string, string>>(
      sql.raw(
        `SELECT ${columns.map((name) => `${name}::text`).join(', ')} FROM scanfeed_reporting.document_rechnung`,
      ) as never,
    );
    expect(rows[0]).toMatchObject({
      faelligkeit_am: '1',
      order_: '2',
      user_: '3',
      _2024: '4',
      field: '5',
      it_s: '6',
      a_b_c: '7',
    });
  });

  it('stay with their fields when a camel-case field and a snake-case field meet', async () => {
    await store({ skontoProzent: 2 });
    await build();
    await store({ skonto_prozent: 3, skontoProzent: 2 });
    await build();
    const columns = ['skonto_prozent', 'skonto_prozent_2', 'other_fields'];
    const rows = [
      { skonto_prozent: '2', skonto_prozent_2: null, other_fields: null },
      { skonto_prozent: '2', skonto_prozent_2: '3', other_fields: null },
    ];
    expect(await readView(setup, 'document_rechnung', columns)).toEqual(rows);
    await setup.rows(sql`DROP VIEW scanfeed_reporting.document_rechnung`);
    await setup.rows(sql`UPDATE ${tables.reportProgress} SET change_seq = 0`);
    await build();
    expect(await readView(setup, 'document_rechnung', columns)).toEqual(rows);
  });

  it('are distinct when keys or slugs differ only in case, signs or their ends', async () => {
    const long = 'x'.repeat(80);
    await store({
      Betrag: 1,
      betrag: 2,
      BETRAG: 3,
      'be-trag': 4,
      be_trag: 5,
      a: { b: 6 },
      a_b: 7,
      [`${long}1`]: 8,
      [`${long}2`]: 9,
    });
    for (const slug of ['Rechnung', 'rechnung!', 'rechnung positionen', `${long}1`, `${long}2`, '!', '字'])
      await store({ n: 1 }, slug);
    await store({ positionen: [{ n: 1 }] });
    await build();
    const views = await viewNames();
    expect(new Set(views).size).toBe(views.length);
    expect(views).toHaveLength(17);
    for (const name of views) expect(name).toMatch(/^document[a-z0-9_]{0,55}$/);
    const rows = await setup.rows(sql<Record<string, string>>`
      SELECT to_jsonb(v) - ARRAY(SELECT name FROM unnest(ARRAY['change_seq']) AS name) AS row
      FROM scanfeed_reporting.document_rechnung AS v WHERE scan_id = 'scan-1'`);
    const values = Object.values((rows[0] as unknown as { row: Record<string, unknown> }).row).filter(
      (v) => typeof v === 'number',
    );
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8, 9]) expect(values).toContain(n);
    await readAllViews(setup);
  });
});

describe('odd documents', () => {
  const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);

  it.runIf(IS_THOROUGH)('break neither the refresh nor a query when they have any keys', async () => {
    const wide = Object.fromEntries(
      Array.from({ length: 1_500 }, (_, index) => [
        `schluessel ${index.toString().replace(/\d/g, (digit) => 'qrstuvwxyz'.charAt(Number(digit)))}`,
        index,
      ]),
    );
    const tables10 = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`t${index}`, [{ a: index }]]));
    await store({ ordentlich: 1 });
    await store(wide);
    await store(tables10);
    await store(nested(400));
    await store({ a: [[[[{ x: 1 }]]]], b: [{ c: [{ d: [{ e: [{ f: 1 }] }] }] }] });
    await store({ k: 1 });
    await store({ k: { sub: 'x' } });
    await store({ k: [1, { y: 2 }] });
    await store({ k: [{ z: 3 }] });
    await store({ k: 'text' });
    await store({
      k: true,
      K: 2,
      [`${'lang'.repeat(100)}`]: 1,
      '': 'leer',
      __proto__x: 1,
      constructor: 2,
      __proto__: raw('3'),
    });
    await store({});
    await store({ zahl: raw('1e1000'), klein: raw('1e-1000'), datum: '0000-00-00', zeit: '2026-01-01T25:00:00Z' });
    await store({ artikel: Array.from({ length: 60_000 }, (_, index) => ({ nr: index, text: 'x'.repeat(140) })) });
    const { built } = await build();
    expect(built).toContain('document_rechnung');
    await readAllViews(setup);
    const columns = await fieldColumns(setup, 'document_rechnung');
    expect(columns).toHaveLength(400); // all rare: room is left for common fields
    expect(await build()).toMatchObject({ built: [], columns: 0 });
    const [row] = await setup.rows(sql<{ keys: number }>`
      SELECT (SELECT count(*)::int FROM jsonb_object_keys(other_fields)) AS keys
      FROM scanfeed_reporting.document_rechnung WHERE scan_id = 'scan-2'`);
    expect(row?.keys).toBeGreaterThan(1_000);
    const [count] = await setup.rows(
      sql`SELECT count(*)::int AS n, max(nr)::int AS last FROM scanfeed_reporting.document_rechnung_artikel`,
    );
    expect(count).toEqual({ n: 60_000, last: 59_999 });
  });

  it('keep each value when a key is a number in one and an object or array in another', async () => {
    for (const k of [1, { sub: 'x' }, ['y'], [{ z: 3 }], 'text']) await store({ k });
    await build();
    const rows = await readView(setup, 'document_rechnung', ['k', 'k__text', 'k__json', 'unfit_fields']);
    expect(rows).toEqual([
      { k: '1', k__text: '1', k__json: '1', unfit_fields: '{document_rechnung_k}' },
      { k: null, k__text: null, k__json: '{"sub": "x"}', unfit_fields: '{k}' },
      { k: null, k__text: null, k__json: '["y"]', unfit_fields: '{k}' },
      { k: null, k__text: null, k__json: '[{"z": 3}]', unfit_fields: '{k}' },
      { k: null, k__text: 'text', k__json: '"text"', unfit_fields: '{k,document_rechnung_k}' },
    ]);
    expect(await readView(setup, 'document_rechnung_k', ['scan_id', 'z', 'sub', 'other_fields'])).toEqual([
      { scan_id: 'scan-2', z: null, sub: 'x', other_fields: null },
      { scan_id: 'scan-3', z: null, sub: null, other_fields: '"y"' },
      { scan_id: 'scan-4', z: '3', sub: null, other_fields: null },
    ]);
  });

  it('keep the values when arrays are nested in arrays', async () => {
    await store({ a: [[{ x: 1 }], {}], b: [[{ x: 2 }]], c: [[[3]], { y: 4 }] });
    await build();
    expect(await readView(setup, 'document_rechnung', ['a', 'b', 'c', 'other_fields'])).toEqual([
      { a: '[[{"x": 1}], {}]', b: '[[{"x": 2}]]', c: '[[[3]], {"y": 4}]', other_fields: null },
    ]);
    expect(await readView(setup, 'document_rechnung_c', ['position', 'y', 'other_fields'])).toEqual([
      { position: '1', y: null, other_fields: '[[3]]' },
      { position: '2', y: '4', other_fields: null },
    ]);
  });

  it('get columns when the keys that lead to them are as long as they can be', async () => {
    const key = () => randomBytes(100).toString('hex').replace(/\d/g, 'x');
    const inObjects = (value: unknown) =>
      Array.from({ length: 7 }, key).reduce((inner, name) => ({ [name]: inner }), value);
    await store({ nr: 1, ...(inObjects([{ ...(inObjects([{ ...(inObjects(1) as object) }]) as object) }]) as object) });
    await build();
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['nr numeric']);
    expect((await viewNames()).length).toBe(4);
  });

  it('have an object only in its column when it is eight keys deep', async () => {
    await store(nested(9));
    await build();
    expect(await readView(setup, 'document_rechnung', ['a_a_a_a_a_a_a_a', 'other_fields'])).toEqual([
      { a_a_a_a_a_a_a_a: '{"a": 1}', other_fields: null },
    ]);
  });

  it('get a view without fields when they are empty objects', async () => {
    await store({}, 'leer');
    await build();
    expect(await readView(setup, 'document_leer', ['scan_id', 'unfit_fields', 'other_fields'])).toEqual([
      { scan_id: 'scan-1', unfit_fields: null, other_fields: null },
    ]);
  });
});
