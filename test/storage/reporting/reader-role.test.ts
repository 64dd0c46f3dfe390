import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import * as migrateCommand from '../../../src/cli/commands/migrate.js';
import { type Database, openDatabase } from '../../../src/storage/connection/pool.js';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { grantReader, inspectReaderRole } from '../../../src/storage/reporting/reader-role.js';
import { migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { createTestDatabase, type TestDatabase, useDatabase } from '../../support/postgres/index.js';
import { connectionOf, MIGRATED, openTestDatabase, TEST_SCHEMA, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const admin = () => setup.database.sql;
const cleanUp: (() => Promise<unknown>)[] = [];
let number = 0;

/** Roles are shared by the whole server, so each test creates and drops its own. */
const roleName = () => {
  const role = `scanfeed_role_${process.pid}_${++number}`;
  cleanUp.unshift(async () => {
    if ((await setup.rows(sql`SELECT FROM pg_roles WHERE rolname = ${role}`)).length === 0) return;
    await sql`DROP OWNED BY ${sql.id(role)}`.execute(admin());
    await sql`DROP ROLE ${sql.id(role)}`.execute(admin());
  });
  return role;
};
const login = async (create: string) => {
  const role = roleName();
  await sql.raw(`CREATE ROLE ${role} LOGIN PASSWORD 'secret' ${create}`).execute(admin());
  return role;
};
const openAs = (role: string, url = given.url): Database => {
  const database = openDatabase({
    connection: { ...connectionOf(url), user: role, password: 'secret' },
    maxConnections: 1,
  });
  cleanUp.unshift(() => database.close());
  return database;
};
const another = async (): Promise<TestDatabase> => {
  const database = await createTestDatabase();
  cleanUp.unshift(() => database.drop());
  return database;
};

afterEach(async () => {
  for (const undo of cleanUp.splice(0)) await undo();
});

describe('the reader role', () => {
  it('can only read the reports when it is used', async () => {
    const reader = roleName();
    expect(await grantReader(setup.connection, reader)).toBe(true);
    expect(await inspectReaderRole(setup.connection, reader)).toEqual({ exists: true, reads: true });
    await (await setup.takeFeed()).commit([entryJson({ scanId: 'a' }), entryJson({ scanId: 'b', status: 'odd' })]);
    const member = await login(`IN ROLE ${reader}`);
    const { sql: db } = openAs(member);
    const views = await sql<{ view: string }>`
      SELECT relname AS view FROM pg_class WHERE relnamespace = 'scanfeed_reporting'::regnamespace`.execute(admin());
    for (const { view } of views.rows) await sql`SELECT * FROM ${sql.id('scanfeed_reporting', view)}`.execute(db);
    const runs =
      await sql`SELECT scan_id, scanfeed_reporting.german_number('1,5')::text AS n FROM scanfeed_reporting.runs`.execute(
        db,
      );
    expect(runs.rows).toEqual([{ scan_id: 'a', n: '1.5' }]);
    const denied = { sqlstate: '42501' };
    await expect(sql`SELECT FROM ${tables.runs}`.execute(db)).rejects.toMatchObject(denied);
    await expect(sql`SELECT payload FROM ${tables.quarantine}`.execute(db)).rejects.toMatchObject(denied);
    await expect(sql`DELETE FROM scanfeed_reporting.runs`.execute(db)).rejects.toMatchObject(denied);
    await expect(sql`UPDATE scanfeed_reporting.quarantined SET state = 'open'`.execute(db)).rejects.toMatchObject(
      denied,
    );
    await expect(sql`CREATE TABLE scanfeed_reporting.mine ()`.execute(db)).rejects.toMatchObject(denied);
    await expect(sql`CREATE TABLE public.mine ()`.execute(db)).rejects.toMatchObject(denied);
  });

  it('cannot log in, and is read-only with a time limit when it may', async () => {
    const reader = roleName();
    await grantReader(setup.connection, reader);
    const { rows } =
      await sql`SELECT rolcanlogin, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = ${reader}`.execute(
        admin(),
      );
    expect(rows).toEqual([{ rolcanlogin: false, rolsuper: false, rolcreatedb: false, rolcreaterole: false }]);
    await sql.raw(`ALTER ROLE ${reader} LOGIN PASSWORD 'secret'`).execute(admin());
    const { sql: db } = openAs(reader);
    const limits =
      await sql`SELECT current_setting('statement_timeout') AS timeout, current_setting('transaction_read_only') AS reads, current_setting('jit') AS jit`.execute(
        db,
      );
    expect(limits.rows).toEqual([{ timeout: '5min', reads: 'on', jit: 'off' }]);
  });

  it('is created once when several databases of a server create it at the same time', async () => {
    const reader = roleName();
    const databases = await Promise.all([another(), another(), another(), another()]);
    const open = databases.map(({ url }) => openTestDatabase(url));
    cleanUp.unshift(() => Promise.all(open.map((each) => each.close())));
    for (const each of open) await migrate(connectStore(each, TEST_SCHEMA), await readMigrations());
    const twice = [...open, ...open];
    expect(await Promise.all(twice.map((each) => grantReader(connectStore(each, TEST_SCHEMA), reader)))).toEqual(
      twice.map(() => true),
    );
  });

  it('needs no rights when it already exists', async () => {
    const reader = roleName();
    await grantReader(setup.connection, reader);
    const connection = connectStore(openAs(await login('NOCREATEROLE')), TEST_SCHEMA);
    expect(await grantReader(connection, reader)).toBe(true);
  });

  it('can read a view when it was created later', async () => {
    const reader = roleName();
    await grantReader(setup.connection, reader);
    await sql`CREATE VIEW scanfeed_reporting.later AS SELECT 1 AS one`.execute(admin());
    cleanUp.unshift(() => sql`DROP VIEW scanfeed_reporting.later`.execute(admin()));
    expect(await inspectReaderRole(setup.connection, reader)).toEqual({ exists: true, reads: false });
    expect(await grantReader(setup.connection, reader)).toBe(true);
    expect(await inspectReaderRole(setup.connection, reader)).toEqual({ exists: true, reads: true });
  });
});

describe('migrate', () => {
  it('lets no reader of one database read another when no role is named', async () => {
    const [a, b] = [await another(), await another()];
    for (const { url } of [a, b]) {
      const { exitCode, out } = await runCommand(migrateCommand, ['migrate', '--json'], { env: { DATABASE_URL: url } });
      expect({ exitCode, readerRole: JSON.parse(out).readerRole }).toEqual({ exitCode: 0, readerRole: null });
    }
    const granted = sql`SELECT datname FROM pg_shdepend JOIN pg_database ON pg_database.oid = dbid
      WHERE datname IN (${a.name}, ${b.name}) AND refobjid IN (SELECT oid FROM pg_roles WHERE rolname ~ 'reader')`;
    expect(await setup.rows(granted)).toEqual([]);
  });

  it('prints the statements for the reader role when its own role may not create one', async () => {
    const owner = await login('NOCREATEROLE');
    const [reader, { url, name }] = [roleName(), await another()];
    await sql.raw(`ALTER DATABASE ${name} OWNER TO ${owner}`).execute(admin());
    const address = new URL(url);
    Object.assign(address, { username: owner, password: 'secret' });
    const env = { DATABASE_URL: address.href, SCANFEED_READER_ROLE: reader };
    const { exitCode, out, err } = await runCommand(migrateCommand, ['migrate'], { env });
    expect(exitCode).toBe(0);
    expect(out).toContain('reporting');
    const statements = err.slice(err.indexOf('\n') + 1);
    const database = openTestDatabase(url);
    cleanUp.unshift(() => database.close());
    await sql.raw(statements).execute(database.sql);
    expect(await inspectReaderRole(connectStore(database, TEST_SCHEMA), reader)).toEqual({ exists: true, reads: true });
    expect((await runCommand(migrateCommand, ['migrate', '--json'], { env })).out).toBe(
      '{"schema":"scanfeed","applied":[],"readerRole":true}\n',
    );
  });
});
