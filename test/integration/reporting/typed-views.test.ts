import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { buildViews, findNewFields, hasNewDocuments } from '../../../src/storage/reporting/refresh-views.js';
import { entryJson, raw } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, fieldColumns, NO_READER, readAllViews, readView, refresh } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
let feed: TestFeed;
let number = 0;

beforeEach(async () => {
  await emptyReports(bench);
  feed = await bench.takeFeed();
  number = 0;
});

/** Stores a document, by default of the type `rechnung`. */
const store = (data: unknown, slug = 'rechnung', over: Record<string, unknown> = {}) => {
  number += 1;
  return feed.commit([entryJson({ scanId: `scan-${number}`, documentType: { slug, name: slug }, data, ...over })]);
};
const build = async () => {
  const done = await refresh(bench);
  expect(done.failed).toEqual([]);
  return done;
};
const viewNames = async () =>
  (await bench.rows(sql<{ name: string }>`SELECT name FROM ${tables.reportViews} ORDER BY id`)).map(({ name }) => name);

describe('a typed view', () => {
  it('has a column for each field, typed by what was seen, every digit as sent', async () => {
    await store({
      betrag: raw('1.10'),
      nummer: raw('12345678901234567890'),
      bezahlt: true,
      datum: '2026-02-28',
      gelesen: '2026-02-28T23:30:00+01:00',
      lieferant: { name: 'Müller', anschrift: { ort: 'Ulm' } },
      tags: ['a', 1],
      leer: null,
    });
    await build();
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual([
      'betrag numeric',
      'bezahlt boolean',
      'datum date',
      'gelesen timestamp with time zone',
      'lieferant_anschrift_ort text',
      'lieferant_name text',
      'nummer numeric',
      'tags jsonb',
    ]);
    const columns = [
      'betrag',
      'nummer',
      'bezahlt',
      'datum',
      'lieferant_anschrift_ort',
      'tags',
      'unfit_fields',
      'other_fields',
    ];
    expect(await readView(bench, 'document_rechnung', columns)).toEqual([
      {
        betrag: '1.10',
        nummer: '12345678901234567890',
        bezahlt: 'true',
        datum: '2026-02-28',
        lieferant_anschrift_ort: 'Ulm',
        tags: '["a", 1]',
        unfit_fields: null,
        other_fields: null,
      },
    ]);
    const read = await bench.rows(sql`SELECT gelesen FROM scanfeed_reporting.document_rechnung`);
    expect(read).toEqual([{ gelesen: new Date('2026-02-28T22:30:00Z') }]);
  });

  it('takes for a date what is a day of the calendar, and nothing else', async () => {
    const days = ['2026-02-28', '2024-02-29', '2000-02-29', '2026-04-30', '2026-12-31', '9999-01-01'];
    const none = [
      '2026-02-29',
      '1900-02-29',
      '2026-04-31',
      '2026-13-01',
      '2026-00-10',
      '2026-1-1',
      '0000-01-01',
      '2026-01-01 ',
      'infinity',
    ];
    const all = [...days, ...none];
    const rows = await bench.rows(sql<{ day: string | null }>`
      SELECT ${sql.id('scanfeed', 'as_date')}(to_jsonb(text))::text AS day
      FROM unnest(${all}::text[]) WITH ORDINALITY AS given (text, at) ORDER BY at`);
    expect(rows.map(({ day }) => day)).toEqual([...days, ...none.map(() => null)]);
  });

  it('shows the elements of an array of objects as rows of a view of their own, with their positions', async () => {
    await store({
      positionen: [
        { menge: raw('2.000'), position: 7, chargen: [{ nr: 'a' }, { nr: 'b' }] },
        { menge: 1, chargen: [] },
      ],
    });
    await store({ positionen: [] });
    await store({ nichts: 1 });
    await build();
    expect(await viewNames()).toEqual([
      'document_rechnung',
      'document_rechnung_positionen',
      'document_rechnung_positionen_chargen',
    ]);
    expect(
      await readView(bench, 'document_rechnung_positionen', ['scan_id', 'position', 'menge', 'data_position']),
    ).toEqual([
      { scan_id: 'scan-1', position: '1', menge: '2.000', data_position: '7' },
      { scan_id: 'scan-1', position: '2', menge: '1', data_position: null },
    ]);
    expect(await readView(bench, 'document_rechnung_positionen_chargen', ['position_1', 'position', 'nr'])).toEqual([
      { position_1: '1', position: '1', nr: 'a' },
      { position_1: '1', position: '2', nr: 'b' },
    ]);
    expect(await readView(bench, 'document_rechnung', ['other_fields'])).toEqual(Array(3).fill({ other_fields: null }));
  });

  it('has completed runs of its type alone, and says which are productive', async () => {
    await store({ a: 1 });
    await store({ a: 2 }, 'rechnung', { environment: 'test' });
    await store({ a: 3 }, 'rechnung', { partnerTestMode: true });
    await store(undefined, 'rechnung', { status: 'failed', failureReason: 'x' });
    await store({ a: 4 }, 'lieferschein');
    await store({ a: 5 });
    await feed.commit([entryJson({ scanId: 'scan-6', revision: 2, status: 'odd' })]);
    await build();
    expect(await readView(bench, 'document_rechnung', ['scan_id', 'productive', 'a'])).toEqual([
      { scan_id: 'scan-1', productive: 'true', a: '1' },
      { scan_id: 'scan-2', productive: 'false', a: '2' },
      { scan_id: 'scan-3', productive: 'false', a: '3' },
      { scan_id: 'scan-6', productive: 'false', a: '5' },
    ]);
  });

  it('has a comment on each column that names the field', async () => {
    await store({ lieferant: { ustId: 'DE1' } });
    await build();
    const rows = await bench.rows(sql<{ name: string; comment: string | null }>`
      SELECT attname AS name, col_description(attrelid, attnum) AS comment FROM pg_attribute
      WHERE attrelid = 'scanfeed_reporting.document_rechnung'::regclass AND attnum > 0`);
    expect(rows.filter(({ comment }) => comment === null)).toEqual([]);
    expect(rows.find(({ name }) => name === 'lieferant_ustid')?.comment).toBe(
      'Field lieferant → ustId (interface 2.1 data)',
    );
  });
});

describe('a typed view only ever gains', () => {
  it('a column for a new field, behind the others, under reports that build on it', async () => {
    await store({ b: 1 });
    await build();
    await bench.rows(sql`CREATE VIEW scanfeed_reporting.mine AS SELECT * FROM scanfeed_reporting.document_rechnung`);
    await store({ a: 'x', b: 2 });
    expect(await readView(bench, 'document_rechnung', ['b', 'other_fields'])).toEqual([
      { b: '1', other_fields: null },
      { b: '2', other_fields: '{"a": "x"}' },
    ]);
    expect(await build()).toMatchObject({ views: 0, columns: 1, built: ['document_rechnung'] });
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual(['b numeric', 'a text']);
    expect(await readView(bench, 'document_rechnung', ['b', 'a', 'other_fields'])).toEqual([
      { b: '1', a: null, other_fields: null },
      { b: '2', a: 'x', other_fields: null },
    ]);
    expect(await bench.rows(sql`SELECT b::int FROM scanfeed_reporting.mine ORDER BY b`)).toEqual([{ b: 1 }, { b: 2 }]);
    await bench.rows(sql`DROP VIEW scanfeed_reporting.mine`);
  });

  it('a second column, as text, where values stop fitting the type; the first is null there, with a flag', async () => {
    await store({ betrag: raw('1.10'), datum: '2026-01-31', ja: true });
    await build();
    await store({ betrag: '1.234,56', datum: '31.02.2026', ja: 'vielleicht' });
    const row = { betrag: null, datum: null, ja: null, unfit_fields: '{betrag,datum,ja}' };
    const columns = ['betrag', 'datum', 'ja', 'unfit_fields'];
    expect((await readView(bench, 'document_rechnung', columns))[1]).toEqual(row);
    await build();
    expect(await readView(bench, 'document_rechnung', [...columns, 'betrag__text', 'datum__text', 'ja__text'])).toEqual(
      [
        {
          betrag: '1.10',
          datum: '2026-01-31',
          ja: 'true',
          unfit_fields: null,
          betrag__text: '1.10',
          datum__text: '2026-01-31',
          ja__text: 'true',
        },
        { ...row, betrag__text: '1.234,56', datum__text: '31.02.2026', ja__text: 'vielleicht' },
      ],
    );
    const sums = await bench.rows(sql`
      SELECT sum(coalesce(betrag, scanfeed_reporting.german_number(betrag__text)))::text AS sum
      FROM scanfeed_reporting.document_rechnung`);
    expect(sums).toEqual([{ sum: '1235.66' }]);
  });

  it('nothing where a text column gets numbers, or any column an empty text or null', async () => {
    await store({ ref: 'A-1', datum: '2026-01-31' });
    await build();
    await store({ ref: raw('12.50'), datum: '' });
    await store({ ref: null, datum: null });
    expect(await build()).toMatchObject({ columns: 0, built: [] });
    expect(await readView(bench, 'document_rechnung', ['ref', 'datum', 'unfit_fields'])).toEqual([
      { ref: 'A-1', datum: '2026-01-31', unfit_fields: null },
      { ref: '12.50', datum: null, unfit_fields: null },
      { ref: null, datum: null, unfit_fields: null },
    ]);
  });

  it('the type that most values have, where they differ from the start', async () => {
    const page = ['2026-01-01', '2026-01-02', 'unbekannt'].map((datum, index) =>
      entryJson({ scanId: `s${index}`, data: { datum } }),
    );
    await feed.commit(page);
    await build();
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual(['datum date', 'datum__text text']);
  });

  it('and comes back as it was when somebody dropped it', async () => {
    await store({ a: 1 });
    await build();
    await bench.rows(sql`DROP VIEW scanfeed_reporting.document_rechnung`);
    expect(await build()).toMatchObject({ built: ['document_rechnung'] });
    expect(await readView(bench, 'document_rechnung', ['a'])).toEqual([{ a: '1' }]);
  });
});

describe('names', () => {
  it('need no quotes, whatever the keys', async () => {
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
    const columns = (await fieldColumns(bench, 'document_rechnung')).map((text) => text.split(' ')[0] ?? '');
    expect([...columns].sort()).toEqual(
      ['_2024', 'a_b_c', 'aehm', 'data_scan_id', 'faelligkeit_am', 'field', 'it_s', 'order_', 'user_', 'ustid'].sort(),
    );
    const rows = await bench.rows<Record<string, string>>(
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

  it('are told apart where keys or slugs differ in case, signs or their far ends only', async () => {
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
    expect(views).toHaveLength(9);
    for (const name of views) expect(name).toMatch(/^document[a-z0-9_]{0,55}$/);
    const rows = await bench.rows(sql<Record<string, string>>`
      SELECT to_jsonb(v) - ARRAY(SELECT name FROM unnest(ARRAY['change_seq']) AS name) AS row
      FROM scanfeed_reporting.document_rechnung AS v WHERE scan_id = 'scan-1'`);
    const values = Object.values((rows[0] as unknown as { row: Record<string, unknown> }).row).filter(
      (v) => typeof v === 'number',
    );
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8, 9]) expect(values).toContain(n);
    await readAllViews(bench);
  });
});

describe('odd documents', () => {
  const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);

  it('break neither the refresh nor a query', async () => {
    const wide = Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`schluessel ${index}`, index]));
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
    await readAllViews(bench);
    const columns = await fieldColumns(bench, 'document_rechnung');
    expect(columns).toHaveLength(500);
    expect(await build()).toMatchObject({ built: [], columns: 0 });
    const [row] = await bench.rows(sql<{ keys: number }>`
      SELECT (SELECT count(*)::int FROM jsonb_object_keys(other_fields)) AS keys
      FROM scanfeed_reporting.document_rechnung WHERE scan_id = 'scan-2'`);
    expect(row?.keys).toBeGreaterThan(1_000);
    const [count] = await bench.rows(
      sql`SELECT count(*)::int AS n, max(nr)::int AS last FROM scanfeed_reporting.document_rechnung_artikel`,
    );
    expect(count).toEqual({ n: 60_000, last: 59_999 });
  });

  it('keep each value of a key that is a number here and an object or array there', async () => {
    for (const k of [1, { sub: 'x' }, ['y'], [{ z: 3 }], 'text']) await store({ k });
    await build();
    const rows = await readView(bench, 'document_rechnung', ['k', 'k__text', 'k__json', 'k_sub', 'unfit_fields']);
    expect(rows).toEqual([
      { k: '1', k__text: '1', k__json: '1', k_sub: null, unfit_fields: null },
      { k: null, k__text: null, k__json: '{"sub": "x"}', k_sub: 'x', unfit_fields: null },
      { k: null, k__text: null, k__json: '["y"]', k_sub: null, unfit_fields: '{k}' },
      { k: null, k__text: null, k__json: '[{"z": 3}]', k_sub: null, unfit_fields: '{k}' },
      { k: null, k__text: 'text', k__json: '"text"', k_sub: null, unfit_fields: '{k}' },
    ]);
    expect(await readView(bench, 'document_rechnung_k', ['z'])).toEqual([{ z: '3' }]);
  });

  it('of an empty object make a view without fields', async () => {
    await store({}, 'leer');
    await build();
    expect(await readView(bench, 'document_leer', ['scan_id', 'unfit_fields', 'other_fields'])).toEqual([
      { scan_id: 'scan-1', unfit_fields: null, other_fields: null },
    ]);
  });
});

describe('a refresh', () => {
  it('looks through each change once, and again when told to', async () => {
    await store({ a: 1 });
    expect(await hasNewDocuments(bench.database.sql, tables)).toBe(true);
    await build();
    expect(await hasNewDocuments(bench.database.sql, tables)).toBe(false);
    await bench.rows(sql`UPDATE ${tables.runs} SET data = '{"b": 1}'`); // unnoticed: not by the daemon
    expect(await build()).toMatchObject({ columns: 0 });
    await bench.rows(sql`UPDATE ${tables.reportProgress} SET change_seq = 0`);
    expect(await build()).toMatchObject({ columns: 1 });
  });

  it('waits for no report that reads a view, and holds up none; the column comes later', async () => {
    await store({ a: 1 });
    await build();
    await store({ a: 1, b: 2 });
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (report) => {
      await sql`SELECT * FROM scanfeed_reporting.document_rechnung`.execute(report);
      const { failed, columns } = await refresh(bench);
      expect(columns).toBe(1);
      expect(failed).toMatchObject([{ view: 'document_rechnung', error: { kind: 'lock_timeout' } }]);
      expect(await readView(bench, 'document_rechnung', ['a'])).toHaveLength(2);
    });
    await other.close();
    expect(await build()).toMatchObject({ columns: 0, built: ['document_rechnung'] });
    expect(await fieldColumns(bench, 'document_rechnung')).toEqual(['a numeric', 'b numeric']);
  });

  it('never waits for another, and no commit waits for it', async () => {
    await store({ a: 1 });
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (refreshing) => {
      await sql`SELECT FROM ${tables.reportProgress} FOR UPDATE`.execute(refreshing);
      await sql`SELECT FROM ${tables.runs}`.execute(refreshing);
      expect(await refresh(bench)).toMatchObject({ busy: true, views: 0 });
      expect(await store({ a: 2 })).toMatchObject({ kind: 'committed' });
    });
    await other.close();
    expect(await build()).toMatchObject({ busy: false, views: 1 });
  });

  it('makes each view once where several refresh at the same moment', async () => {
    for (const slug of ['a', 'b', 'c', 'd']) await store({ x: 1, y: [{ z: 1 }] }, slug);
    const done = await Promise.all([1, 2, 3, 4].map(() => refresh(bench)));
    await build();
    expect(done.flatMap(({ failed }) => failed)).toEqual([]);
    expect(await viewNames()).toHaveLength(8);
    await readAllViews(bench);
  });

  it('never puts an older definition in the place of one that another process has built since', async () => {
    await store({ a: 1 });
    await findNewFields(bench.database.sql, tables);
    const late = openTestDatabase(given.url, 1);
    let building: ReturnType<typeof buildViews> | undefined;
    await bench.database.sql.transaction().execute(async (other) => {
      // The late one has seen what stands, and waits to read what was decided.
      await sql`LOCK TABLE ${tables.reportColumns} IN ACCESS EXCLUSIVE MODE`.execute(other);
      building = buildViews(late.sql, tables, NO_READER);
      await untilWaiting(bench.database.sql, 1);
      await sql`UPDATE ${tables.reportViews} SET built_as = 'newer'`.execute(other);
    });
    expect(await building).toEqual({ built: [], failed: [] });
    await late.close();
    expect(await build()).toMatchObject({ built: ['document_rechnung'] });
  });

  it('builds the other views where one cannot be built', async () => {
    await bench.rows(sql`CREATE TABLE scanfeed_reporting.document_b ()`);
    await store({ x: 1 }, 'a');
    await build();
    await bench.rows(sql`DROP VIEW scanfeed_reporting.document_a; CREATE TABLE scanfeed_reporting.document_a ()`);
    await store({ x: 1 }, 'b');
    expect(await refresh(bench)).toMatchObject({ built: ['document_b_2'], failed: [{ view: 'document_a' }] });
    await bench.rows(sql`DROP TABLE scanfeed_reporting.document_a; DROP TABLE scanfeed_reporting.document_b`);
    expect(await build()).toMatchObject({ built: ['document_a'] });
  });
});
