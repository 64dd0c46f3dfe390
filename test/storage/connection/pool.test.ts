import { sql } from 'kysely';
import pg from 'pg';
import pgConnection from 'pg-connection-string';
import { describe, expect, it, vi } from 'vitest';
import { type Database, type DatabaseOptions, openDatabase } from '../../../src/storage/connection/pool.js';
import { useDatabase } from '../../support/postgres/index.js';

const provided = useDatabase();

async function withPool(over: Partial<DatabaseOptions>, work: (database: Database) => Promise<void>): Promise<void> {
  const { host, port, user, password, database: name } = pgConnection.parse(provided.url);
  const connection = {
    host: host ?? 'localhost',
    port: Number(port ?? 5432),
    database: name ?? 'postgres',
    ...(user && { user }),
    ...(password && { password: password as string }),
  };
  const database = openDatabase({ connection, maxConnections: 1, ...over });
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

const backend = async ({ sql: db }: Database) =>
  (await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(db)).rows[0]?.pid;

describe('a connection', () => {
  it('is used again after an error that PostgreSQL reported', () =>
    withPool({}, async (database) => {
      const before = await backend(database);
      await expect(sql`SELECT 1/0`.execute(database.sql)).rejects.toMatchObject({
        sqlstate: '22012',
        kind: 'data',
        action: 'data',
      });
      expect(await backend(database)).toBe(before);
    }));

  it('is destroyed when a statement is not answered in time; the next statement gets another', () =>
    withPool({ statementDeadlineMs: 300 }, async (database) => {
      const before = await backend(database);
      await expect(sql`SELECT pg_sleep(3600)`.execute(database.sql)).rejects.toMatchObject({
        kind: 'deadline',
        action: 'retry',
      });
      expect(await backend(database)).not.toBe(before);
    }));

  it('that dies under a statement is replaced, and the process lives on', () =>
    withPool({}, async (database) => {
      await expect(sql`SELECT pg_terminate_backend(pg_backend_pid())`.execute(database.sql)).rejects.toMatchObject({
        action: 'retry',
      });
      expect(await backend(database)).toBeTypeOf('number');
    }));

  it('never comes back into the pool inside a transaction that was given up', () =>
    withPool({ statementDeadlineMs: 300 }, async (database) => {
      const sent = vi.spyOn(pg.Client.prototype, 'query');
      const given = database.sql.transaction().execute(async (tx) => {
        await sql`SELECT pg_sleep(3600)`.execute(tx);
      });
      await expect(given).rejects.toMatchObject({ kind: 'deadline', action: 'retry' });
      // It would wait behind the statement, for a second deadline.
      expect(sent.mock.calls.map(([text]) => text)).not.toContain('rollback');
      sent.mockRestore();
      const { rows } =
        await sql`SELECT pg_current_xact_id_if_assigned() AS xid, now() = statement_timestamp() AS alone`.execute(
          database.sql,
        );
      expect(rows).toEqual([{ xid: null, alone: true }]);
    }));
});

describe('errors', () => {
  it('carry the SQLSTATE and the constraint, never the values', () =>
    withPool({}, async (database) => {
      await sql`CREATE TABLE secrets (value text CONSTRAINT no_secret CHECK (value <> 'GEHEIM'))`.execute(database.sql);
      const failed = await sql`INSERT INTO secrets VALUES ('GEHEIM')`.execute(database.sql).catch((error) => error);
      expect(failed).toMatchObject({ sqlstate: '23514', kind: 'data' });
      expect(failed.message).toContain('no_secret');
      expect(`${failed.stack} ${JSON.stringify(failed)}`).not.toContain('GEHEIM');
    }));

  it('of a pool that is used up do not look for the fault in the login', () =>
    withPool({ connectDeadlineMs: 2_000 }, async (database) => {
      await backend(database); // logged in
      await database.sql.connection().execute(async () => {
        const waited = await backend(database).catch((error) => error);
        expect(waited).toMatchObject({ kind: 'pool_used_up', action: 'retry' });
        expect(waited.message).toMatch(
          /^all connections to PostgreSQL at \S+ were in use for 2 s; look why statements are slow .* raise SCANFEED_DATABASE_POOL$/,
        );
      });
      expect(await backend(database)).toBeTypeOf('number');
    }));

  it('of a server that cannot be reached are to be retried', () =>
    withPool({ connection: { host: '127.0.0.1', port: 1, user: 'nobody', database: 'none' } }, async (database) => {
      await expect(backend(database)).rejects.toMatchObject({ kind: 'connection', action: 'retry' });
    }));

  it.each([
    ['a wrong password', { password: 'canary-wrong' }, 'refused the password of the role "', '28P01'],
    [
      'an unknown role',
      { user: 'nobody', password: 'canary-wrong' },
      'refused the password of the role "nobody"',
      '28P01',
    ],
  ])('of a login with %s are held, and name the role and never the password', async (_, login, text, sqlstate) => {
    const { host, port, user, database } = pgConnection.parse(provided.url);
    const connection = { host: host ?? 'localhost', port: Number(port ?? 5432), user, database, ...login };
    await withPool({ connection: connection as DatabaseOptions['connection'] }, async (refusing) => {
      const failed = await backend(refusing).catch((error) => error);
      expect(failed).toMatchObject({ kind: 'authentication', action: 'hold', sqlstate });
      expect(failed.message).toContain(`PostgreSQL at ${host}:${port} ${text}`);
      expect(`${failed.stack} ${JSON.stringify(failed)}`).not.toContain('canary');
    });
  });

  it('of a login without a password say that one is wanted', async () => {
    const { host, port, user, database } = pgConnection.parse(provided.url);
    const connection = { host: host ?? 'localhost', port: Number(port ?? 5432), user, database };
    await withPool({ connection: connection as DatabaseOptions['connection'] }, async (refusing) => {
      await expect(backend(refusing)).rejects.toThrow('it wants a password, and none is set; check the role');
    });
  });

  it('of a database that does not exist are held', () =>
    withPool({}, async (database) => {
      expect(await backend(database)).toBeTypeOf('number');
      const { host, port, user, password } = pgConnection.parse(provided.url);
      const connection = {
        host: host ?? 'localhost',
        port: Number(port ?? 5432),
        database: 'no_such_database',
        ...(user && { user }),
        ...(password && { password: password as string }),
      };
      await withPool({ connection }, async (missing) => {
        await expect(backend(missing)).rejects.toMatchObject({ sqlstate: '3D000', action: 'hold' });
      });
    }));
});

it('closing ends also the connections that are busy', async () => {
  await withPool({}, async (database) => {
    const hanging = sql`SELECT pg_sleep(3600)`.execute(database.sql).catch((error) => error);
    await expect.poll(() => database.usage().active).toBe(1);
    await database.close();
    expect(await hanging).toMatchObject({ action: 'retry' });
  });
});
