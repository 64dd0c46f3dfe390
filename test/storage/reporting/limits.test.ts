import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { findFields } from '../../../src/storage/reporting/find-fields.js';
import { findFull } from '../../../src/storage/reporting/report-view.js';
import { readReportViews } from '../../../src/storage/reporting/stored-views.js';
import { entryJson } from '../../support/entries.js';
import { fieldColumns, fields, named, readView, useDocuments } from '../../support/reports.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();
const { feed, store, build, viewNames } = useDocuments(setup);

const fullViews = async () =>
  (await setup.rows(sql`SELECT DISTINCT full_views FROM scanfeed_reporting.sync_status`))[0];

describe('the columns of a view', () => {
  it('leave room for common fields when the first document is wide', async () => {
    await store({ ...fields(named(400)), kopf: fields(named(400)) });
    await build();
    expect((await fieldColumns(setup, 'document_rechnung')).length).toBe(400);
    for (let number = 1; number <= 5; number += 1) {
      await store({ nr: `R${number}`, betrag: number, adresse: { ort: 'Ulm' } });
      await build(); // like a daemon, which finds each document alone
    }
    const columns = ['nr', 'betrag', 'adresse_ort', 'other_fields'];
    expect((await readView(setup, 'document_rechnung', columns)).at(-1)).toEqual({
      ...{ nr: 'R5', betrag: '5', adresse_ort: 'Ulm', other_fields: null },
    });
    expect(await fullViews()).toEqual({ full_views: '0' });
  });

  it('leave room for fields of the document when a nested object is wide', async () => {
    await store({ kopf: fields(named(600)) });
    await build();
    await store({ ...fields(named(600)), nr: 1 });
    await build();
    const columns = await fieldColumns(setup, 'document_rechnung');
    expect(columns.filter((name) => name.startsWith('kopf')).length).toBe(300);
    expect(columns.length).toBe(400);
  });

  it('leave room for common fields of elements when one document has many wide elements', async () => {
    await store({ positionen: Array(5).fill(fields(named(500))) });
    await build();
    for (let number = 1; number <= 5; number += 1) await store({ positionen: [{ menge: number }] });
    await build();
    const columns = await fieldColumns(setup, 'document_rechnung_positionen');
    expect(columns.length).toBe(401);
    expect(columns.at(-1)).toBe('menge numeric');
  });

  it('do not have the keys of a map when there are hundreds of days', async () => {
    const days = Array.from({ length: 300 }, (_, day) =>
      new Date(Date.UTC(2026, 0, day + 1)).toISOString().slice(0, 10),
    );
    await store({ nr: 1, ...fields(days, { menge: 1 }), tage: fields(days), konto_1: 1, konto_2: 2 });
    await build();
    for (const day of days.slice(0, 60)) await store({ nr: 2, tage: fields([day]) });
    await build();
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual([
      'konto_1 numeric',
      'konto_2 numeric',
      'nr numeric',
    ]);
    const [first] = await readView(setup, 'document_rechnung', ['other_fields']);
    expect(Object.keys(JSON.parse(first?.other_fields ?? '')).length).toBe(301);
  });

  it('are kept when their keys turn out to be those of a map', async () => {
    for (let day = 1; day <= 40; day += 1) {
      await store({ [`tag ${day}`]: day });
      if (day % 10 === 0) await build();
    }
    expect((await fieldColumns(setup, 'document_rechnung')).length).toBe(30);
    expect(await readView(setup, 'document_rechnung', ['tag_7'])).toContainEqual({ tag_7: '7' });
  });
});

describe('the views of a document type', () => {
  /** Stores a document with sixty arrays, then common documents with another array, which must get a view. */
  const expectRoomAfter = async (document: unknown) => {
    await store(document);
    await build();
    for (let number = 1; number <= 5; number += 1) await store({ positionen: [{ menge: number }] });
    await build();
    const names = await viewNames();
    expect(names.length).toBe(41);
    expect(names.at(-1)).toBe('document_rechnung_positionen');
  };

  it('leave room for other arrays when there are many under the keys of a map', async () => {
    const numbers = Array.from({ length: 60 }, (_, index) => `${4711 + index}`);
    await store({ konten: fields(numbers, { zeilen: [{ a: 1 }] }) });
    await build();
    await expectRoomAfter({ ...fields(named(60, 'liste'), [{ a: 1 }]) });
  });

  it('leave room for common arrays when one document has many arrays of many elements', async () => {
    await expectRoomAfter(fields(named(60, 'liste'), Array(5).fill({ a: 1 })));
  });
});

it('has every column and view of a rare type when there are 250 documents of another between each two', async () => {
  const rare = { ...fields(named(450)), kopf: fields(named(40)), ...fields(named(47, 'liste'), [{ a: 1 }]) };
  for (let number = 1; number <= 5; number += 1) {
    await store(rare, 'gutschrift', number > 2 ? { completedAt: null } : {});
    const data = { nr: number };
    await feed().commit(Array.from({ length: 250 }, (_, n) => entryJson({ scanId: `frequent-${number}-${n}`, data })));
    await build();
  }
  expect((await fieldColumns(setup, 'document_gutschrift')).length).toBe(490);
  expect((await viewNames()).filter((name) => name.includes('_gutschrift_liste')).length).toBe(47);
});

it('finds the fields of a rare type when frequent ones fill a search', async () => {
  const wide = Array.from({ length: 25 }, (_, type) => ({ slug: `wide-${type}`, name: 'wide' }));
  const keys = named(1_000).flatMap((key) => [key, `k_${key}`]);
  const entries = [...wide, ...wide].map((documentType, n) =>
    entryJson({ scanId: `wide-${n}`, documentType, data: fields(keys) }),
  );
  await feed().commit(entries);
  await store(fields(named(10)), 'gutschrift');
  const found = await findFields(setup.connection, sql`true`);
  expect(found.length).toBe(50_000);
  expect(found.filter(({ slug }) => slug === 'gutschrift').map(({ path }) => path.join())).toEqual(['', ...named(10)]);
});

it('counts all types together as one limit when they have 2,000 views', async () => {
  await setup.rows(sql`INSERT INTO ${tables.reportViews} (name, document_type_slug, arrays)
    SELECT 'document_' || number, number % 100, jsonb_build_array(ARRAY[number::text]) FROM generate_series(1, 2000) AS number`);
  expect(await fullViews()).toEqual({ full_views: '1' });
  const found = findFull(await readReportViews(setup.connection));
  expect(found).toEqual(['all types (2000 views together, so new types have none)']);
  await setup.rows(sql`DELETE FROM ${tables.reportViews} WHERE name = 'document_7'`);
  expect(await fullViews()).toEqual({ full_views: '0' });
  expect(findFull(await readReportViews(setup.connection))).toEqual([]);
});

it('counts views and types at a limit when common fields fill it', async () => {
  for (let number = 1; number <= 5; number += 1) await store(fields(named(520)));
  for (let number = 1; number <= 5; number += 1) await store(fields(named(60, 'liste'), [{ a: 1 }]), 'lieferschein');
  await build();
  expect((await fieldColumns(setup, 'document_rechnung')).length).toBe(500);
  expect(await fieldColumns(setup, 'document_lieferschein')).toHaveLength(12); // the arrays without a view, as JSON
  expect(await fullViews()).toEqual({ full_views: '2' });
});
