import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { entryJson, pageJson, raw } from '../../support/entries.js';
import { tables, useStore } from '../../support/store.js';
import { CASES, CASES_A_PAGE, deliver, PAGES } from './deliver.js';
import { inFull, jsonText, numberText, stringText } from './json-texts.js';

const setup = useStore();
let scans = 0;
const newScan = () => {
  scans += 1;
  return `scan-${scans}`;
};
const pageOf = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: CASES_A_PAGE, maxLength: CASES_A_PAGE });

/** Returns how PostgreSQL itself stores each JSON text. */
const asJsonb = async (texts: readonly string[]) =>
  (
    await setup.rows(
      sql<{
        json: string;
      }>`SELECT text::jsonb::text AS json FROM unnest(${texts}::text[]) WITH ORDINALITY AS t (text, n) ORDER BY n`,
    )
  ).map(({ json }) => json);

/** Columns of runs, in the order of their scan ids. */
const columnsOf = <T>(scanIds: readonly string[], columns: string) =>
  setup.rows(
    sql<T>`SELECT ${sql.raw(columns)} FROM unnest(${scanIds}::text[]) WITH ORDINALITY AS sent (id, position)
      LEFT JOIN ${tables.runs} ON scan_id = id ORDER BY position`,
  );

it(`stores data and extra as sent when they are any JSON values (${CASES} cases)`, async () => {
  await fc.assert(
    fc.asyncProperty(pageOf(fc.tuple(jsonText(), jsonText(), stringText())), async (cases) => {
      const sent = cases.map(([data, unknown, name]) => ({ scanId: newScan(), data, unknown, name }));
      const body = sent.map(({ scanId, data, unknown, name }) => {
        // The prefix "x" keeps it distinct from the names of the interface.
        const entry = entryJson({ scanId, data: { wert: raw(data.sent) } });
        return `${entry.slice(0, -1)},"x${name.sent.slice(1)}:${unknown.sent}}`;
      });
      const counts = await deliver(setup, pageJson(body));
      expect(counts.inserted).toBe(CASES_A_PAGE);
      const rows = await columnsOf<{ data: string; extra: string; repaired: boolean }>(
        sent.map(({ scanId }) => scanId),
        'data::text, extra::text, repaired',
      );
      const data = await asJsonb(sent.map((of) => `{"wert":${of.data.expected}}`));
      const extra = await asJsonb(sent.map((of) => `{"x${of.name.expected.slice(1)}:${of.unknown.expected}}`));
      expect(rows.map((row) => row.data)).toEqual(data);
      expect(rows.map((row) => row.extra)).toEqual(extra);
    }),
    PAGES,
  );
});

it(`stores every digit, without exponents, when data has any number (${CASES} cases)`, async () => {
  await fc.assert(
    fc.asyncProperty(pageOf(numberText()), async (numbers) => {
      const sent = numbers.map((number) => ({ scanId: newScan(), number }));
      await deliver(setup, pageJson(sent.map(({ scanId, number }) => entryJson({ scanId, data: { n: raw(number) } }))));
      const rows = await columnsOf<{ n: string }>(
        sent.map(({ scanId }) => scanId),
        `data->>'n' AS n`,
      );
      expect(rows.map(({ n }) => n)).toEqual(numbers.map(inFull));
    }),
    PAGES,
  );
});

it(`stores a confidence as the nearest double, or as null and in extra, when it is any number (${CASES} cases)`, async () => {
  await fc.assert(
    fc.asyncProperty(pageOf(fc.oneof(numberText(20), numberText(400))), async (numbers) => {
      const sent = numbers.map((number) => ({ scanId: newScan(), number }));
      const body = pageJson(sent.map(({ scanId, number }) => entryJson({ scanId, ocrConfidence: raw(number) })));
      expect(await deliver(setup, body)).toMatchObject({ inserted: CASES_A_PAGE, quarantined: 0 });
      const rows = await columnsOf(
        sent.map(({ scanId }) => scanId),
        `ocr_confidence, extra->>'ocrConfidence' AS original, repaired`,
      );
      const expected = numbers.map((number) => {
        const double = Number(number);
        const readable = Number.isFinite(double) && (double !== 0 || !/^[^eE]*[1-9]/.test(number));
        return readable
          ? { ocr_confidence: double, original: null, repaired: false }
          : { ocr_confidence: null, original: inFull(number), repaired: true };
      });
      expect(rows).toEqual(expected);
    }),
    PAGES,
  );
});

it(`stores or repairs every text column when it is any string (${CASES} cases)`, async () => {
  await fc.assert(
    fc.asyncProperty(pageOf(stringText()), async (strings) => {
      const sent = strings.map((text) => ({ scanId: newScan(), text: raw(text.sent) }));
      const body = sent.map(({ scanId, text }) =>
        entryJson({
          scanId,
          status: 'failed',
          data: null,
          fileName: text,
          partnerName: text,
          failureReason: text,
          error: text,
          markdown: text,
          documentType: { slug: text, name: text },
        }),
      );
      await deliver(setup, pageJson(body));
      const rows = await columnsOf(
        sent.map(({ scanId }) => scanId),
        'file_name, partner_name, failure_reason, error, markdown, document_type_slug, document_type_name, repaired',
      );
      const quarantined = await setup.rows(
        sql<{ scan_id: string; payload: Buffer }>`
          SELECT scan_id, payload FROM ${tables.quarantine}
          WHERE state = 'repaired' AND scan_id = ANY (${sent.map(({ scanId }) => scanId)}::text[])`,
      );
      const originals = new Map(quarantined.map(({ scan_id, payload }) => [scan_id, payload.toString()]));
      expect(rows).toEqual(
        strings.map(({ sent: text, expected }) => {
          const value = JSON.parse(expected);
          return {
            file_name: value,
            partner_name: value,
            failure_reason: value,
            error: value,
            markdown: value,
            document_type_slug: value,
            document_type_name: value,
            repaired: JSON.parse(text) !== value,
          };
        }),
      );
      expect(sent.map(({ scanId }) => originals.get(scanId))).toEqual(
        strings.map(({ sent: text, expected }, n) => (JSON.parse(text) === JSON.parse(expected) ? undefined : body[n])),
      );
    }),
    PAGES,
  );
});
