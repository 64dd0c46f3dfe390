import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { inspectSchema, migrate, readMigrations, requireSchema } from '../../src/storage/migrate.js';
import type { Database } from '../../src/storage/pool.js';
import { tablesOf } from '../../src/storage/schema.js';
import { createTestDatabase } from '../support/postgres/index.js';
import { openTestDatabase, tables } from '../support/store.js';

async function withDatabase(work: (database: Database, url: string) => Promise<void>): Promise<void> {
  const created = await createTestDatabase();
  const database = openTestDatabase(created.url);
  try {
    await work(database, created.url);
  } finally {
    await database.close();
    await created.drop();
  }
}

describe('migrations', () => {
  it('are applied once by several starters at the same moment', () =>
    withDatabase(async (database, url) => {
      const migrations = await readMigrations();
      const others = [openTestDatabase(url), openTestDatabase(url)];
      const applied = await Promise.all([database, ...others].map(({ sql: db }) => migrate(db, tables, migrations)));
      await Promise.all(others.map((other) => other.close()));
      expect(applied.map((list) => list.length).sort()).toEqual([0, 0, migrations.length]);
      expect(await inspectSchema(database.sql, tables, migrations)).toEqual({
        version: migrations.length,
        missing: [],
        tooNew: false,
      });
    }));

  it('leave nothing behind when one of them fails', () =>
    withDatabase(async ({ sql: db }) => {
      const migrations = await readMigrations();
      const broken = { version: 9999, name: 'broken', worksFrom: 9999, text: 'SELECT 1; SELECT nonsense' };
      await expect(migrate(db, tables, [...migrations, broken])).rejects.toMatchObject({ kind: 'schema' });
      expect((await inspectSchema(db, tables, migrations)).version).toBe(0);
    }));

  it('go to the schema that the settings name, whatever characters it has', () =>
    withDatabase(async ({ sql: db }) => {
      const odd = tablesOf('Rechnungen "Süd"');
      await migrate(db, odd, await readMigrations());
      const { rows } = await sql`SELECT FROM ${odd.runs}`.execute(db);
      expect(rows).toEqual([]);
      expect((await sql`SELECT FROM pg_namespace WHERE nspname = 'scanfeed'`.execute(db)).rows).toEqual([]);
    }));

  it('comment on every table and column', () =>
    withDatabase(async ({ sql: db }) => {
      await migrate(db, tables, await readMigrations());
      const { rows } = await sql`
        SELECT c.relname, a.attname FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'scanfeed'::regnamespace AND c.relkind IN ('r', 'v')
          AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL)`.execute(db);
      expect(rows).toEqual([]);
    }));
});

describe('a schema that this release cannot use', () => {
  it('is told from one that lacks migrations, with the remedy', () =>
    withDatabase(async ({ sql: db }) => {
      const migrations = await readMigrations();
      await expect(requireSchema(db, tables, migrations)).rejects.toThrow('run `scanfeed migrate`');
      await migrate(db, tables, migrations);
      await requireSchema(db, tables, migrations);
      await sql`INSERT INTO ${tables.migrations} VALUES (9998, 'additive', 1), (9999, 'later', 9999)`.execute(db);
      await expect(requireSchema(db, tables, migrations)).rejects.toThrow('too new');
    }));

  it('is not one that a newer release only added to', () =>
    withDatabase(async ({ sql: db }) => {
      const migrations = await readMigrations();
      await migrate(db, tables, migrations);
      await sql`INSERT INTO ${tables.migrations} VALUES (9998, 'additive', 1)`.execute(db);
      await expect(requireSchema(db, tables, migrations)).resolves.toBeUndefined();
    }));
});
