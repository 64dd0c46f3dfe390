import type pg from 'pg';
import { expect, it } from 'vitest';
import { createPreparedStatements } from '../../../src/storage/connection/prepared-statements.js';

const [direct, pooled] = [{} as pg.PoolClient, {} as pg.PoolClient];
const prepared = () => createPreparedStatements((client) => client === direct);

it('prepares no statement when a pooler is in between', () => {
  expect(prepared()(pooled, 'SELECT $1', [1])).toEqual({ text: 'SELECT $1', values: [1] });
});

it('names a statement by its text when it is sent again', () => {
  const prepare = prepared();
  const [first, other, again] = ['SELECT $1', 'SELECT $1 + 1', 'SELECT $1'].map(
    (text) => prepare(direct, text, [1]).name,
  );
  expect(again).toBe(first);
  expect(other).not.toBe(first);
});

it('prepares a hundred statements at most', () => {
  const prepare = prepared();
  const names = Array.from({ length: 150 }, (_, n) => prepare(direct, `SELECT $1 + ${n}`, [1]).name);
  expect(new Set(names.filter((name) => name !== undefined)).size).toBe(100);
  expect(prepare(direct, 'SELECT $1 + 0', [1]).name).toBe(names[0]);
  expect(prepare(direct, 'SELECT $1 + 149', [1]).name).toBeUndefined();
});
