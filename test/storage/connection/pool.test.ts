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

/** Returns the error of a call that fails when this time has passed, and does not fail before. */
async function errorAfter(ms: number, call: () => Promise<unknown>): Promise<Error> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const ended = vi.fn();
    const error = call().catch((reason: Error) => reason);
    void error.then(ended);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    return (await error) as Error;
  } finally {
    vi.useRealTimers();
  }
}

describe('a connection', () => {
  it('prepares statements with parameters when no pooler is in between', () =>
    withPool({}, async ({ sql: db }) => {
      for (const number of [1, 2]) await sql`SELECT ${number}::integer AS number`.execute(db);
      await sql`SELECT 3 AS number`.execute(db);
      const { rows } =
        await sql`SELECT statement, generic_plans + custom_plans AS uses FROM pg_prepared_statements`.execute(db);
      expect(rows).toEqual([{ statement: 'SELECT $1::integer AS number', uses: '2' }]);
    }));

  it('is replaced when a migration has changed the columns of a prepared statement', () =>
    withPool({ maxConnections: 2 }, async (database) => {
      const read = () => sql`SELECT * FROM prepared WHERE id = ${1}`.execute(database.sql);
      await sql`CREATE TABLE prepared (id integer)`.execute(database.sql);
      await read();
      await sql`ALTER TABLE prepared ADD COLUMN name text`.execute(database.sql);
      await expect(read()).rejects.toMatchObject({ sqlstate: '0A000', kind: 'schema', action: 'retry' });
      await expect(read()).resolves.toMatchObject({ rows: [] });
    }));

  it('is used again when PostgreSQL reported the error', () =>
    withPool({}, async (database) => {
      const before = await backend(database);
      await expect(sql`SELECT 1/0`.execute(database.sql)).rejects.toMatchObject({
        sqlstate: '22012',
        kind: 'data',
        action: 'reject',
      });
      expect(await backend(database)).toBe(before);
    }));

  it('is destroyed and replaced when a statement exceeds its deadline', () =>
    withPool({ statementDeadlineMs: 20_000 }, async (database) => {
      const before = await backend(database);
      const late = await errorAfter(20_000, () => sql`SELECT pg_sleep(3600)`.execute(database.sql));
      expect(late).toMatchObject({ kind: 'deadline', action: 'retry' });
      expect(await backend(database)).not.toBe(before);
    }));

  it('is replaced when it is lost during a statement', () =>
    withPool({}, async (database) => {
      await expect(sql`SELECT pg_terminate_backend(pg_backend_pid())`.execute(database.sql)).rejects.toMatchObject({
        action: 'retry',
      });
      expect(await backend(database)).toBeTypeOf('number');
    }));

  it('does not return to the pool when its transaction was abandoned', () =>
    withPool({ statementDeadlineMs: 20_000 }, async (database) => {
      const sent = vi.spyOn(pg.Client.prototype, 'query');
      const given = database.sql.transaction().execute(async (tx) => {
        throw await errorAfter(20_000, () => sql`SELECT pg_sleep(3600)`.execute(tx));
      });
      await expect(given).rejects.toMatchObject({ kind: 'deadline', action: 'retry' });
      // A rollback would wait for a second deadline, behind the statement.
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
  it('contain SQLSTATE and constraint, but no values, when PostgreSQL refuses a statement', () =>
    withPool({}, async (database) => {
      await sql`CREATE TABLE secrets (value text CONSTRAINT no_secret CHECK (value <> 'GEHEIM'))`.execute(database.sql);
      const failed = await sql`INSERT INTO secrets VALUES ('GEHEIM')`.execute(database.sql).catch((error) => error);
      expect(failed).toMatchObject({ sqlstate: '23514', kind: 'data' });
      expect(failed.message).toContain('no_secret');
      expect(`${failed.stack} ${JSON.stringify(failed)}`).not.toContain('GEHEIM');
    }));

  it('do not blame the login when all connections are in use', () =>
    withPool({ connectDeadlineMs: 20_000, sizeSetting: 'SCANFEED_DATABASE_POOL' }, async (database) => {
      await backend(database); // logged in
      await database.sql.connection().execute(async () => {
        const waited = await errorAfter(20_000, () => backend(database));
        expect(waited).toMatchObject({ kind: 'pool_exhausted', action: 'retry' });
        expect(waited.message).toMatch(
          /^all connections to PostgreSQL at \S+ were in use for 20 s; find out why statements are slow .* raise SCANFEED_DATABASE_POOL$/,
        );
      });
      expect(await backend(database)).toBeTypeOf('number');
    }));

  it('wait for a connection as long as the queue allows, whatever the deadline of connecting', () =>
    withPool({ connectDeadlineMs: 20_000, queueDeadlineMs: 60_000 }, async (database) => {
      await backend(database); // logged in
      await database.sql.connection().execute(async () => {
        const { message } = await errorAfter(60_000, () => backend(database));
        // No setting has the size of this pool.
        expect(message).toMatch(/ were in use for 60 s; find out why statements are slow \(locks, disk, load\)$/);
      });
    }));

  it.each([
    ['a wrong password', { password: 'canary-wrong' }, 'refused the password of the role "', '28P01'],
    [
      'an unknown role',
      { user: 'nobody', password: 'canary-wrong' },
      'refused the password of the role "nobody"',
      '28P01',
    ],
  ])('are held and name the role, not the password, when the login has %s', async (_, login, text, sqlstate) => {
    const { host, port, user, database } = pgConnection.parse(provided.url);
    const connection = { host: host ?? 'localhost', port: Number(port ?? 5432), user, database, ...login };
    await withPool({ connection: connection as DatabaseOptions['connection'] }, async (refusing) => {
      const failed = await backend(refusing).catch((error) => error);
      expect(failed).toMatchObject({ kind: 'authentication', action: 'hold', sqlstate });
      expect(failed.message).toContain(`PostgreSQL at ${host}:${port} ${text}`);
      expect(`${failed.stack} ${JSON.stringify(failed)}`).not.toContain('canary');
    });
  });

  it('say that a password is required when none is set', async () => {
    const { host, port, user, database } = pgConnection.parse(provided.url);
    const connection = { host: host ?? 'localhost', port: Number(port ?? 5432), user, database };
    await withPool({ connection: connection as DatabaseOptions['connection'] }, async (refusing) => {
      await expect(backend(refusing)).rejects.toThrow('it requires a password, but none is set; check the role');
    });
  });

  it('are held when the database does not exist', () =>
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

it('closes busy connections when the pool is closed', async () => {
  await withPool({}, async (database) => {
    const hanging = sql`SELECT pg_sleep(3600)`.execute(database.sql).catch((error) => error);
    await expect.poll(() => database.usage().active).toBe(1);
    await database.close();
    expect(await hanging).toMatchObject({ action: 'retry' });
  });
});
