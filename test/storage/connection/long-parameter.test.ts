import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { LongParameter } from '../../../src/storage/connection/long-parameter.js';
import { useStore } from '../../support/store.js';

const setup = useStore();
const VERSION = Buffer.of(1);

/** JSON text in pieces of this many bytes, after the version byte of `jsonb`. */
function inPieces(json: string, size: number): LongParameter {
  const bytes = Buffer.from(json);
  const count = Math.ceil(bytes.length / size);
  return new LongParameter([
    VERSION,
    ...Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size)),
  ]);
}

describe('a long parameter', () => {
  it.each([
    ['short', 10, 3],
    ['as long as a page', 340_000, 5_000],
    ['of megabytes', 9_000_000, 1_048_576],
  ])('arrives complete when it is sent among other parameters: %s', async (_, length, size) => {
    const text = 'ß€😀"\\'.repeat(length / 10);
    const json = JSON.stringify({ text, n: 'x' });
    const [row] = await setup.rows(sql<Record<string, unknown>>`
      SELECT ${'before'}::text AS before, ${null}::text AS nothing,
        md5(${inPieces(json, size)}::jsonb->>'text') = md5(${text}::text) AS same,
        ${Buffer.from([0, 255])}::bytea AS bytes, ${7}::int AS number, ${['a', 'b']}::text[] AS list`);
    expect(row).toEqual({
      before: 'before',
      nothing: null,
      same: true,
      bytes: Buffer.from([0, 255]),
      number: 7,
      list: ['a', 'b'],
    });
  });

  it('leaves the connection usable when PostgreSQL refuses it', async () => {
    const broken = inPieces(`{"a":"${'x'.repeat(500_000)}`, 1_000);
    await expect(setup.rows(sql`SELECT ${broken}::jsonb`)).rejects.toMatchObject({ action: 'reject' });
    expect(await setup.rows(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
  });
});
