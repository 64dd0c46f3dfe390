import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { fieldColumns, readView, useDocuments } from '../../support/reports.js';
import { useStore } from '../../support/store.js';

const setup = useStore();
const { feed, store, build, viewNames } = useDocuments(setup);

describe('a typed view', () => {
  it('has a typed column for each field when documents have scalar values', async () => {
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
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual([
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
    expect(await readView(setup, 'document_rechnung', columns)).toEqual([
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
    const read = await setup.rows(sql`SELECT gelesen FROM scanfeed_reporting.document_rechnung`);
    expect(read).toEqual([{ gelesen: new Date('2026-02-28T22:30:00Z') }]);
  });

  it('has a date column when all texts are valid dates', async () => {
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
    const rows = await setup.rows(sql<{ day: string | null }>`
      SELECT ${sql.id('scanfeed', 'as_date')}(to_jsonb(text))::text AS day
      FROM unnest(${all}::text[]) WITH ORDINALITY AS given (text, at) ORDER BY at`);
    expect(rows.map(({ day }) => day)).toEqual([...days, ...none.map(() => null)]);
  });

  it('has a separate view with positions when a field is an array of objects', async () => {
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
      'document_rechnung_history',
      'document_rechnung_positionen',
      'document_rechnung_positionen_chargen',
    ]);
    expect(
      await readView(setup, 'document_rechnung_positionen', ['scan_id', 'position', 'menge', 'data_position']),
    ).toEqual([
      { scan_id: 'scan-1', position: '1', menge: '2.000', data_position: '7' },
      { scan_id: 'scan-1', position: '2', menge: '1', data_position: null },
    ]);
    expect(await readView(setup, 'document_rechnung_positionen_chargen', ['position_1', 'position', 'nr'])).toEqual([
      { position_1: '1', position: '1', nr: 'a' },
      { position_1: '1', position: '2', nr: 'b' },
    ]);
    expect(await readView(setup, 'document_rechnung', ['other_fields'])).toEqual(Array(3).fill({ other_fields: null }));
  });

  it('contains only completed runs of its type when others are stored', async () => {
    await store({ a: 1 });
    await store({ a: 2 }, 'rechnung', { environment: 'test' });
    await store({ a: 3 }, 'rechnung', { partnerTestMode: true });
    await store(undefined, 'rechnung', { status: 'failed', failureReason: 'x' });
    await store({ a: 4 }, 'lieferschein');
    await store({ a: 5 });
    await feed().commit([entryJson({ scanId: 'scan-6', revision: 2, status: 'odd' })]);
    await store(null);
    await build();
    expect(await readView(setup, 'document_rechnung', ['scan_id', 'productive', 'a'])).toEqual([
      { scan_id: 'scan-1', productive: 'true', a: '1' },
      { scan_id: 'scan-2', productive: 'false', a: '2' },
      { scan_id: 'scan-3', productive: 'false', a: '3' },
      { scan_id: 'scan-6', productive: 'false', a: '5' },
      { scan_id: 'scan-7', productive: 'false', a: null },
    ]);
  });
});

describe('a typed view', () => {
  it('gets a column after the others when a field is new, even if reports depend on it', async () => {
    await store({ b: 1 });
    await build();
    await setup.rows(sql`CREATE VIEW scanfeed_reporting.mine AS SELECT * FROM scanfeed_reporting.document_rechnung`);
    await store({ a: 'x', b: 2 });
    expect(await readView(setup, 'document_rechnung', ['b', 'other_fields'])).toEqual([
      { b: '1', other_fields: null },
      { b: '2', other_fields: '{"a": "x"}' },
    ]);
    expect(await build()).toMatchObject({
      views: 0,
      columns: 1,
      built: ['document_rechnung', 'document_rechnung_history'],
    });
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['b numeric', 'a text']);
    expect(await readView(setup, 'document_rechnung', ['b', 'a', 'other_fields'])).toEqual([
      { b: '1', a: null, other_fields: null },
      { b: '2', a: 'x', other_fields: null },
    ]);
    expect(await setup.rows(sql`SELECT b::int FROM scanfeed_reporting.mine ORDER BY b`)).toEqual([{ b: 1 }, { b: 2 }]);
    await setup.rows(sql`DROP VIEW scanfeed_reporting.mine`);
  });

  it('gets a second text column when values no longer fit the type', async () => {
    await store({ betrag: raw('1.10'), datum: '2026-01-31', ja: true });
    await build();
    await store({ betrag: '1.234,56', datum: '31.02.2026', ja: 'vielleicht' });
    const row = { betrag: null, datum: null, ja: null, unfit_fields: '{betrag,datum,ja}' };
    const columns = ['betrag', 'datum', 'ja', 'unfit_fields'];
    expect((await readView(setup, 'document_rechnung', columns))[1]).toEqual(row);
    await build();
    expect(await readView(setup, 'document_rechnung', [...columns, 'betrag__text', 'datum__text', 'ja__text'])).toEqual(
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
    const sums = await setup.rows(sql`
      SELECT sum(coalesce(betrag, scanfeed_reporting.german_number(betrag__text)))::text AS sum
      FROM scanfeed_reporting.document_rechnung`);
    expect(sums).toEqual([{ sum: '1235.66' }]);
  });

  it('gets no column when any column receives an empty text or null', async () => {
    await store({ ref: 'A-1', datum: '2026-01-31' });
    await build();
    await store({ ref: '', datum: '' });
    await store({ ref: null, datum: null });
    expect(await build()).toMatchObject({ columns: 0, built: [] });
    expect(await readView(setup, 'document_rechnung', ['ref', 'datum', 'unfit_fields'])).toEqual([
      { ref: 'A-1', datum: '2026-01-31', unfit_fields: null },
      { ref: '', datum: null, unfit_fields: null },
      { ref: null, datum: null, unfit_fields: null },
    ]);
  });

  it('gets a second number column when a text column receives numbers, which are not in German notation', async () => {
    await store({ betrag: '1.234,56' });
    await build();
    for (const number of ['1.234', '0.500', '2.5', '1000', '1e3']) await store({ betrag: raw(number) });
    await store({ betrag: '1.234' });
    await build();
    const rows = await readView(setup, 'document_rechnung', ['betrag', 'betrag__number', 'unfit_fields']);
    expect(rows).toEqual([
      { betrag: '1.234,56', betrag__number: null, unfit_fields: null },
      { betrag: '1.234', betrag__number: '1.234', unfit_fields: null },
      { betrag: '0.500', betrag__number: '0.500', unfit_fields: null },
      { betrag: '2.5', betrag__number: '2.5', unfit_fields: null },
      { betrag: '1000', betrag__number: '1000', unfit_fields: null },
      { betrag: '1000', betrag__number: '1000', unfit_fields: null },
      { betrag: '1.234', betrag__number: null, unfit_fields: null },
    ]);
    const sums = await setup.rows(sql`
      SELECT sum(COALESCE(betrag__number, scanfeed_reporting.german_number(betrag)))::text AS sum,
        count(*) FILTER (WHERE scanfeed_reporting.german_number(betrag) <> betrag__number)::int AS wrong
      FROM scanfeed_reporting.document_rechnung`);
    expect(sums).toEqual([{ sum: '3238.794', wrong: 0 }]);
  });

  it.each([
    { first: 'a number', value: raw('1.10'), total: '1236803.894', not_counted: '6' },
    { first: 'a text', value: 'x', total: '1236802.794', not_counted: '7' },
    { first: 'an object', value: { wert: 900 }, total: '1236802.794', not_counted: '7' },
    { first: 'an array', value: [900], total: '1236802.794', not_counted: '7' },
  ])(
    'is summed, with the number of values that are left out, as documented when its first value is $first',
    async ({ first, value, total, not_counted }) => {
      await store({ betrag: value });
      await build();
      const counted = [raw('1000'), '1.234,56', '1.234.567', raw('1.234')];
      const left = ['1.234', '0.500', 'viel', true, { wert: 900 }, [1]];
      for (const betrag of [...counted, ...left, '', null, {}, [], undefined]) await store({ betrag });
      await build();
      const page = readFileSync(new URL('../../../docs/reporting.md', import.meta.url), 'utf8');
      const [, statement = ''] = /```sql untested\n([^`]*not_counted[^`]*)```/.exec(page) ?? [];
      // Texts are the most frequent values of the second build.
      const text = first === 'an array' ? 'betrag__text' : 'betrag';
      const forTexts = (name: string) => (name === 'betrag' ? 'betrag__number' : text);
      const query =
        first === 'a number'
          ? statement
          : statement.replaceAll(/\bbetrag(__text)?\b(?!')/g, forTexts).replace("'betrag'", `'${text}'`);
      expect(await setup.rows(sql.raw(query))).toEqual([{ total, not_counted }]);
    },
  );

  it('has no mark for a time that could not be read, but the documented query finds it', async () => {
    await store({ betrag: 1 }, 'rechnung', { completedAt: '0001-01-01T00:00:00Z', deliveredAt: 'gestern' });
    await store({ betrag: 2 });
    await build();
    const [first] = await readView(setup, 'document_rechnung', ['completed_at', 'unfit_fields', 'other_fields']);
    expect(first).toEqual({ completed_at: null, unfit_fields: null, other_fields: null });
    const page = readFileSync(new URL('../../../docs/reporting.md', import.meta.url), 'utf8');
    const [, statement = ''] = /with an unreadable time:\n\n```sql\n([^`]*)```/.exec(page) ?? [];
    expect(await setup.rows(sql.raw(statement))).toEqual([
      { scan_id: 'scan-1', submitted_at: null, completed_at: '0001-01-01T00:00:00Z', delivered_at: 'gestern' },
    ]);
  });

  it('names no column of an exceptional shape where the value is shown in the usual one', async () => {
    const usual = { positionen: [{ menge: 1 }], betrag: 5 };
    await store({ positionen: 'siehe Anlage', betrag: { wert: 900 } });
    await build();
    for (let number = 0; number < 20; number += 1) await store(usual);
    await build();
    const columns = ['positionen', 'betrag', 'betrag_wert', 'unfit_fields'];
    const exception = { positionen: 'siehe Anlage', betrag: null, betrag_wert: '900' };
    const other = { positionen: null, betrag: '5', betrag_wert: null };
    // While it is unknown which is the exception.
    expect((await readView(setup, 'document_rechnung', columns)).slice(0, 2)).toEqual([
      { ...exception, unfit_fields: '{betrag,document_rechnung_positionen}' },
      { ...other, unfit_fields: '{betrag_wert,positionen}' },
    ]);
    for (let number = 0; number < 20; number += 1) await store(usual);
    expect((await build()).built).toEqual(['document_rechnung', 'document_rechnung_history']);
    expect((await readView(setup, 'document_rechnung', columns)).slice(0, 2)).toEqual([
      { ...exception, unfit_fields: '{betrag,document_rechnung_positionen}' },
      { ...other, unfit_fields: null },
    ]);
    const described = await setup.rows(sql`SELECT column_name AS name FROM scanfeed_reporting.columns
      WHERE view_name = 'document_rechnung' AND description LIKE '%; few values have this shape, so%' ORDER BY position`);
    expect(described).toEqual([{ name: 'betrag_wert' }, { name: 'positionen' }]);
    expect(await build()).toMatchObject({ built: [] });
  });

  it('says in each column of an array that documents without it are not marked when few documents have the array', async () => {
    await store({ kopf: { positionen: [{ menge: 1, lose: [{ nr: 1 }] }] } });
    for (let number = 0; number < 39; number += 1) await store({ kopf: 'siehe Anlage' });
    await build();
    const described = await setup.rows(sql`SELECT view_name, column_name AS name FROM scanfeed_reporting.columns
      WHERE description LIKE '%; few values give rows of this view, so%' ORDER BY view_name, position`);
    const view = 'document_rechnung_kopf_positionen';
    expect(described).toEqual([
      { view_name: view, name: 'menge' },
      { view_name: `${view}_lose`, name: 'nr' },
    ]);
  });

  it('names the view of an array where it has no row when most of its rows are single elements without an array', async () => {
    await store({ positionen: [{ menge: 1 }] });
    await build();
    for (let number = 0; number < 20; number += 1) await store({ positionen: { menge: 1 } });
    for (let number = 0; number < 20; number += 1) await store({ positionen: 'siehe Anlage' });
    await build();
    const rows = await readView(setup, 'document_rechnung', ['positionen', 'unfit_fields']);
    const named = rows.filter(({ unfit_fields: unfit }) => unfit === '{document_rechnung_positionen}');
    expect(named.map(({ positionen }) => positionen)).toEqual(Array(20).fill('siehe Anlage'));
  });

  it('names the view of an array whose rows are missing, which names the view that has them, when the object around it becomes an array', async () => {
    const kopf = (nr: number) => ({ nr, positionen: [{ menge: nr }] });
    await store({ kopf: kopf(1) });
    await build();
    await store({ kopf: [kopf(2), kopf(3)] });
    await build();
    const first = 'document_rechnung_kopf_positionen';
    expect(await readView(setup, 'document_rechnung', ['kopf_nr', 'unfit_fields'])).toEqual([
      { kopf_nr: '1', unfit_fields: null },
      { kopf_nr: null, unfit_fields: `{kopf_nr,${first}}` },
    ]);
    expect(await readView(setup, first, ['menge'])).toEqual([{ menge: '1' }]);
    expect((await readView(setup, `${first}_2`, ['menge'])).map(({ menge }) => menge)).toEqual(['1', '2', '3']);
    const comments = await setup.rows(sql`SELECT obj_description(oid) AS comment FROM pg_class
      WHERE relname LIKE ${`${first}%`} AND relkind = 'v' ORDER BY relname`);
    const elements =
      'Elements of kopf → positionen in the documents of completed runs of the document type "rechnung", one row each';
    expect(comments).toEqual([
      { comment: `${elements}; ${first}_2 has these and further ones` },
      { comment: elements },
    ]);
  });

  it('gets the most frequent type when the first values differ', async () => {
    const page = ['2026-01-01', '2026-01-02', 'unbekannt'].map((datum, index) =>
      entryJson({ scanId: `s${index}`, data: { datum } }),
    );
    await feed().commit(page);
    await build();
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['datum date', 'datum__text text']);
  });

  it('is rebuilt unchanged when it was dropped', async () => {
    await store({ a: 1 });
    await build();
    await setup.rows(sql`DROP VIEW scanfeed_reporting.document_rechnung`);
    expect(await build()).toMatchObject({ built: ['document_rechnung'] });
    expect(await readView(setup, 'document_rechnung', ['a'])).toEqual([{ a: '1' }]);
  });
});
