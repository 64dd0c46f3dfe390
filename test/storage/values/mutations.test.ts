import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { entryFields, entryJson, pageJson, raw, toJson } from '../../support/entries.js';
import { tables, useStore } from '../../support/store.js';
import { CASES, CASES_A_PAGE, deliver, PAGES } from './deliver.js';
import { jsonText, numberText } from './json-texts.js';

const setup = useStore();
let scans = 0;

/** Values at a limit, of a wrong type, or otherwise difficult. */
const anyValue = fc.oneof(
  jsonText().map(({ sent }) => sent),
  numberText(140_000),
  fc.constantFrom(
    'null',
    'true',
    '0',
    '-1',
    '1.0',
    '2147483647',
    '2147483648',
    '1e2',
    '1e400000',
    `0.${'1'.repeat(16_384)}`,
    '"completed"',
    '"processing"',
    '"\\u0000"',
    '"\\ud800"',
    '{"slug":null,"name":null}',
    '{"slug":7}',
    `"${'x'.repeat(3_000)}"`,
    `${'['.repeat(600)}${']'.repeat(600)}`,
    `${'{"a":'.repeat(400)}1${'}'.repeat(400)}`,
    `[${'1e99999,'.repeat(20)}1]`,
  ),
);

const NAMES = [...Object.keys(entryFields()), 'failureReason', 'error', 'markdown', 'rawOcrResult', '__proto__', 'neu'];

/** Fields that are removed (null), replaced, or added under the same name. */
const mutation = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.option(anyValue), fc.boolean()), { maxLength: 3 }),
  },
  { weight: 1, arbitrary: anyValue },
);
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutated(scanId: string, changes: Mutation): string {
  if (typeof changes === 'string') return changes;
  const members: [string, string][] = Object.entries(entryFields({ scanId })).map(([name, value]) => [
    name,
    toJson(value),
  ]);
  for (const [name, value, repeated] of changes) {
    const at = members.findIndex(([known]) => known === name);
    if (at !== -1 && !repeated) members.splice(at, 1);
    if (value !== null) members.push([name, value]);
  }
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${toJson(raw(value))}`).join()}}`;
}

it(`stores or quarantines an entry whole, and stores its neighbours, when it is mutated (${CASES} cases)`, async () => {
  let [storedOnes, quarantined] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(mutation, { minLength: CASES_A_PAGE, maxLength: CASES_A_PAGE }), async (mutations) => {
      const page = mutations.map((changes) => {
        scans += 1;
        return { neighbour: `neighbour-${scans}`, entry: mutated(`mutated-${scans}`, changes) };
      });
      await deliver(setup, pageJson(page.flatMap(({ neighbour, entry }) => [entryJson({ scanId: neighbour }), entry])));
      const neighbours = await setup.rows(
        sql`SELECT FROM ${tables.runs} WHERE scan_id = ANY (${page.map(({ neighbour }) => neighbour)}::text[])`,
      );
      expect(neighbours).toHaveLength(CASES_A_PAGE);
      const outcomes = await setup.rows(
        sql<{ stored: boolean; kept: boolean }>`
          SELECT EXISTS (SELECT FROM ${tables.runs} WHERE scan_id = sent.scan_id AND revision >= sent.revision) AS stored,
            EXISTS (SELECT FROM ${tables.quarantine} AS kept WHERE payload = convert_to(sent.entry, 'UTF8')
              -- Two mutations may produce the same scan and revision: then the first one is kept, as promised.
              OR kept.scan_id = sent.scan_id AND kept.revision = sent.revision) AS kept
          FROM jsonb_to_recordset(${JSON.stringify(
            page.map(({ entry }) => ({ entry, ...identityOf(JSON.parse(entry)) })),
          )}::jsonb) AS sent (entry text, scan_id text, revision integer)`,
      );
      expect(outcomes.filter(({ stored, kept }) => !stored && !kept)).toEqual([]);
      storedOnes += outcomes.filter(({ stored }) => stored).length;
      quarantined += outcomes.filter(({ kept }) => kept).length;
    }),
    PAGES,
  );
  // Both outcomes are frequent.
  expect(Math.min(storedOnes, quarantined)).toBeGreaterThan(CASES / 10);
});

/** Returns the scan id and revision of an entry. Each is null if it is missing or PostgreSQL cannot store it. */
function identityOf(entry: unknown): { scan_id: string | null; revision: number | null } {
  const { scanId, revision } = (entry ?? {}) as { scanId?: unknown; revision?: unknown };
  return {
    scan_id: typeof scanId === 'string' && scanId.isWellFormed() && !scanId.includes('\0') ? scanId : null,
    revision: Number.isInteger(revision) && Math.abs(revision as number) < 2 ** 31 ? (revision as number) : null,
  };
}
