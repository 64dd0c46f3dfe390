import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as doctor from '../../../src/cli/commands/doctor.js';
import type { Finding } from '../../../src/cli/doctor/finding.js';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { createErrorWriter } from '../../../src/storage/operator/recent-errors.js';
import { grantReader } from '../../../src/storage/reporting/reader-role.js';
import { migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { testCertificate } from '../../support/certificate.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { commitPending } from '../../support/pending.js';
import { findPgBouncer, startPgBouncer } from '../../support/pgbouncer.js';
import { createTestDatabase, useDatabase } from '../../support/postgres/index.js';
import { makeReadOnly, withConnection } from '../../support/postgres/maintenance.js';
import { emptyReports, refresh } from '../../support/reports.js';
import { refuse, reply, ScriptedService } from '../../support/scripted-service.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, useStore } from '../../support/store.js';
import { unusedPort } from '../../support/unused-port.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const reader = `scanfeed_reader_${process.pid}`;
const undos: (() => unknown)[] = [];
const afterwards = (undo: () => unknown) => undos.unshift(undo);
let emulator: Emulator;

beforeEach(async () => {
  emulator = await startEmulator({ history: 3 });
  afterwards(() => emulator.close());
});
afterEach(async () => {
  for (const undo of undos.splice(0)) await undo();
});

const run = (env: Record<string, string> = {}, args: readonly string[] = [], more: Partial<CommandSetting> = {}) =>
  runCommand(doctor, ['doctor', ...args], {
    env: {
      DATABASE_URL: given.url,
      SCANFEED_BASE_URL: emulator.url,
      SCANFEED_API_KEY: emulator.apiKey,
      SCANFEED_READER_ROLE: reader,
      ...env,
    },
    ...more,
  });

/** Findings by the name of the check. */
const examine = async (env: Record<string, string> = {}) => {
  const { out, exitCode } = await run(env, ['--json']);
  const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: Finding[] };
  expect(exitCode).toBe(ok ? 0 : 1);
  return Object.fromEntries(findings.map((finding) => [finding.check, finding]));
};

const withReader = async () => {
  await grantReader(setup.connection, reader);
  afterwards(async () => {
    await sql`DROP OWNED BY ${sql.id(reader)}`.execute(setup.database.sql);
    await sql`DROP ROLE ${sql.id(reader)}`.execute(setup.database.sql);
  });
};

const scripted = async (...answers: Parameters<ScriptedService['answer']>) => {
  const service = await ScriptedService.start();
  afterwards(() => service.stop());
  return service.answer(...answers);
};

describe('doctor', () => {
  it('finds no problem when service and database are available, and changes neither', async () => {
    await withReader();
    const before = await snapshot();
    const { exitCode, out, err } = await run();
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
    for (const line of out.trimEnd().split('\n')) expect(line).toMatch(/^ok {4}\w/);
    expect(out).toContain('ok    delivery feed      responds (status completed, failed, environment prod; ');
    expect(out).toMatch(/ok {4}schema +scanfeed is at version \d+, which this release requires\n/);
    expect(out).toContain(`${reader} can read every report\n`);
    expect(await snapshot()).toEqual(before);
  });

  it('requests one entry with the configured filters and without a cursor or a time', async () => {
    const page = reply(200, { items: [], nextCursor: 'c' });
    const service = await scripted(page, page, page);
    await examine({
      SCANFEED_BASE_URL: service.baseUrl,
      SCANFEED_ENVIRONMENT: 'test',
      SCANFEED_STATUS: 'failed',
      SCANFEED_DOCUMENT_TYPE: 'rechnung',
    });
    expect(service.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /v1/scans?status=failed&environment=test&limit=1',
      'GET /v1/scans?status=failed&environment=test&documentType=rechnung&limit=1',
      'GET /v1/scans?status=failed&environment=test&limit=1',
    ]);
  });

  it('runs the independent checks when one fails', async () => {
    const port = await unusedPort();
    const { out, err, exitCode } = await run({
      SCANFEED_FED: 'x',
      DATABASE_URL: `postgres://someone:pass-of-the-test@127.0.0.1:${port}/app`,
    });
    expect(exitCode).toBe(1);
    expect(err).toBe('scanfeed: 1 check fails\n');
    expect(out).toMatch(/^WARN {2}settings +SCANFEED_FED is not a setting .* did you mean SCANFEED_FEED\?$/m);
    expect(out).toMatch(/^ok {4}delivery feed +responds/m);
    expect(out).toMatch(/^FAIL {2}database login +no connection to PostgreSQL .*nothing listens there/m);
    expect(out).toMatch(/^skip {2}schema +requires a login$/m);
  });

  it('names every wrong setting', async () => {
    const { out, err, exitCode } = await run({ SCANFEED_API_KEY: '', SCANFEED_PAGE_LIMIT: '500' });
    expect({ exitCode, out }).toEqual({ exitCode: 78, out: '' });
    expect(err).toMatch(/SCANFEED_API_KEY is not set; expected: /);
    expect(err).toMatch(/SCANFEED_PAGE_LIMIT is "500"; expected: /);
  });

  it('shows outcomes as words, and fits 80 columns, when the output is a terminal', async () => {
    const { out } = await run({ SCANFEED_DOCUMENT_TYPE: 'no-such-type' }, [], { columns: 80 });
    expect(out).toMatch(/^FAIL {2}document type +"no-such-type" is unknown/m);
    const prose = out.split('\n').filter((line) => !line.endsWith(';'));
    for (const line of prose) expect(line.length).toBeLessThanOrEqual(80);
    expect(out).not.toContain('\x1b');
  });
});

describe('doctor checks of the surroundings', () => {
  it('names the statements when the recorded version of the collation is not the present one', async () => {
    const locale = "LOCALE_PROVIDER icu ICU_LOCALE 'und' LOCALE 'C'";
    const { url, name, drop } = await createTestDatabase(undefined, locale);
    afterwards(drop);
    await MIGRATED.prepare(url);
    expect(await examine({ DATABASE_URL: url })).toMatchObject({ surroundings: { outcome: 'ok' } });
    await withConnection(url, (client) =>
      client.query(`UPDATE pg_database SET datcollversion = '1.2.3' WHERE datname = current_database()`),
    );
    const { surroundings } = await examine({ DATABASE_URL: url });
    expect(surroundings).toMatchObject({
      outcome: 'warning',
      statements: [`REINDEX DATABASE "${name}"`, `ALTER DATABASE ${name} REFRESH COLLATION VERSION`],
    });
    for (const statement of surroundings?.statements ?? [])
      await withConnection(url, (client) => client.query(statement));
    expect(await examine({ DATABASE_URL: url })).toMatchObject({ surroundings: { outcome: 'ok' } });
  });

  it('names the setting when the server does not know the reporting time zone', async () => {
    // Node.js knows this zone; it was removed from the database of time zones in 2020.
    expect(await examine({ SCANFEED_REPORTING_TIME_ZONE: 'SystemV/AST4' })).toMatchObject({
      surroundings: {
        outcome: 'failing',
        message: expect.stringMatching(/SystemV\/AST4 \(SCANFEED_REPORTING_TIME_ZONE\).*pg_timezone_names/),
      },
    });
    for (const zone of ['Europe/Berlin', 'europe/berlin', 'UTC']) {
      const { surroundings } = await examine({ SCANFEED_REPORTING_TIME_ZONE: zone });
      expect(surroundings).toMatchObject({ outcome: 'ok' });
    }
  });

  it('names columns and constraints that were added to the tables', async () => {
    const alter = (change: string) => sql`ALTER TABLE ${tables.runs} ${sql.raw(change)}`.execute(setup.database.sql);
    await alter(
      "ADD approved_by text, ADD CONSTRAINT partner_known CHECK (partner_name <> 'x'), ALTER completed_at SET NOT NULL",
    );
    afterwards(() => alter('DROP approved_by, DROP CONSTRAINT partner_known, ALTER completed_at DROP NOT NULL'));
    expect(await examine()).toMatchObject({
      surroundings: {
        outcome: 'warning',
        message: expect.stringContaining(
          'the column runs.approved_by, the constraint partner_known, the constraint NOT NULL of runs.completed_at',
        ),
      },
    });
  });
});

describe('doctor checks of the service', () => {
  it('reports the message of the service when the key is rejected', async () => {
    expect(await examine({ SCANFEED_API_KEY: 'another-key' })).toMatchObject({
      'delivery feed': {
        outcome: 'failing',
        message: expect.stringMatching(/401.*check the key; the service says: ".+"/),
      },
      'document type': { outcome: 'ok' },
      'service cache': { outcome: 'skipped' },
      schema: { outcome: 'ok' },
    });
    const service = await scripted(refuse(403, 'Keine Organisation.'));
    expect(await examine({ SCANFEED_BASE_URL: service.baseUrl })).toMatchObject({
      'delivery feed': { outcome: 'failing', message: expect.stringContaining('belongs to no organization') },
    });
  });

  it('names the document type, not the base URL, when the document type is unknown', async () => {
    expect(await examine({ SCANFEED_DOCUMENT_TYPE: 'rechnung' })).toMatchObject({
      'document type': { outcome: 'ok', message: '"rechnung" exists' },
    });
    expect(await examine({ SCANFEED_DOCUMENT_TYPE: 'no-such-type' })).toMatchObject({
      'delivery feed': { outcome: 'ok' },
      'document type': { outcome: 'failing', message: expect.stringContaining('correct the document type') },
    });
    const service = await scripted(refuse(404, 'Nicht gefunden.'));
    expect(await examine({ SCANFEED_BASE_URL: service.baseUrl, SCANFEED_DOCUMENT_TYPE: 'rechnung' })).toMatchObject({
      'delivery feed': { outcome: 'failing', message: expect.stringContaining('check the base URL') },
      'document type': { outcome: 'skipped' },
    });
  });

  it('warns about a cache that answers a repeated request', async () => {
    const body = { items: [], nextCursor: 'c' };
    const cached = reply(200, body, { age: '7', via: '1.1 edge' });
    const service = await scripted(reply(200, body), cached);
    expect((await examine({ SCANFEED_BASE_URL: service.baseUrl }))['service cache']).toEqual({
      check: 'service cache',
      outcome: 'warning',
      message: expect.stringMatching(/^1\.1 edge responded instead of the service \(Age: 7\); /),
    });
  });

  it.each([
    [
      'the host name does not resolve',
      'https://nothing.invalid/v1',
      /(ENOTFOUND|EAI_AGAIN)\); check the host names of the URL and of the proxy, and DNS/,
    ],
    ['nothing listens on the port', null, /ECONNREFUSED/],
  ])('reports the cause, and skips the dependent checks, when %s', async (_, address, message) => {
    const found = await examine({ SCANFEED_BASE_URL: address ?? `http://127.0.0.1:${await unusedPort()}/v1` });
    expect(found).toMatchObject({
      'delivery feed': { outcome: 'failing', message: expect.stringMatching(message) },
      'service cache': { outcome: 'skipped' },
    });
  });

  it('reports when the certificate is not trusted', async () => {
    const server = createTlsServer(testCertificate('localhost'));
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
    afterwards(() => server.close());
    const { port } = server.address() as AddressInfo;
    expect(await examine({ SCANFEED_BASE_URL: `https://localhost:${port}/v1` })).toMatchObject({
      'delivery feed': { outcome: 'failing', message: expect.stringContaining('NODE_EXTRA_CA_CERTS') },
    });
  });

  it('hides the password when the proxy is unusable', async () => {
    const refusing = createServer((socket) => void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'));
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
    afterwards(() => refusing.close());
    const { port } = refusing.address() as AddressInfo;
    const through = (proxy: string) => ({ SCANFEED_BASE_URL: 'https://service.example/v1', HTTPS_PROXY: proxy });
    const refused = await examine(through(`http://someone:pass-of-the-test@127.0.0.1:${port}`));
    expect(refused).toMatchObject({
      'delivery feed': {
        outcome: 'failing',
        message: expect.stringContaining('it returned 407; check user and password in HTTPS_PROXY'),
      },
    });
    expect(JSON.stringify(refused)).not.toContain('pass-of-the-test');
    const away = await examine(through(`http://127.0.0.1:${await unusedPort()}`));
    expect(away['delivery feed']?.message).toMatch(/^no response .*ECONNREFUSED.* and the proxy/);
  });
});

describe('doctor checks of the database', () => {
  it('reports that the daemon creates the schema when the database is empty', async () => {
    const empty = await createTestDatabase();
    afterwards(empty.drop);
    expect(await examine({ DATABASE_URL: empty.url })).toMatchObject({
      schema: { outcome: 'ok', message: expect.stringContaining('does not exist yet') },
      privileges: { outcome: 'skipped' },
      'reader role': { outcome: 'skipped' },
      'stored feed': { outcome: 'ok' },
    });
    expect(await examine({ DATABASE_URL: empty.url, SCANFEED_AUTO_MIGRATE: 'false' })).toMatchObject({
      schema: { outcome: 'failing', message: expect.stringContaining('run `scanfeed migrate`') },
    });
  });

  it('skips what reads the tables of this release when migrations are missing', async () => {
    const older = await createTestDatabase();
    afterwards(older.drop);
    const database = openTestDatabase(older.url);
    afterwards(() => database.close());
    await migrate(connectStore(database, TEST_SCHEMA), (await readMigrations()).slice(0, 3));
    const requiresMigrations = { outcome: 'skipped', message: 'requires the missing migrations' };
    expect(await examine({ DATABASE_URL: older.url })).toMatchObject({
      schema: { outcome: 'ok', message: expect.stringContaining('is at version 3; ') },
      privileges: { outcome: 'ok' },
      'typed views': requiresMigrations,
      'stored feed': requiresMigrations,
      'retired feeds': requiresMigrations,
    });
  });

  it('names the objects to drop when only the reports of an earlier installation exist', async () => {
    const left = await createTestDatabase();
    afterwards(left.drop);
    await MIGRATED.prepare(left.url);
    await withConnection(left.url, (client) => client.query('DROP SCHEMA scanfeed CASCADE'));
    expect(await examine({ DATABASE_URL: left.url })).toMatchObject({
      schema: { outcome: 'failing', message: expect.stringContaining('run DROP SCHEMA "scanfeed_reporting" CASCADE') },
      privileges: { outcome: 'skipped' },
      'reader role': { outcome: 'skipped' },
      'stored feed': { outcome: 'skipped' },
    });
  });

  it('prints the statements that grant them when a role lacks privileges', async () => {
    const role = `scanfeed_poor_${process.pid}`;
    const db = setup.database.sql;
    await sql.raw(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`).execute(db);
    afterwards(() => sql.raw(`DROP OWNED BY ${role}; DROP ROLE ${role}`).execute(db));
    await sql
      .raw(`GRANT USAGE ON SCHEMA scanfeed TO ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA scanfeed TO ${role}`)
      .execute(db);
    const url = new URL(given.url);
    [url.username, url.password] = [role, 'secret'];
    const giveWhatLacks = async (message: string) => {
      const { privileges } = await examine({ DATABASE_URL: url.href });
      expect(privileges).toMatchObject({ outcome: 'failing', message: expect.stringContaining(message) });
      for (const statement of privileges?.statements ?? []) await sql.raw(statement).execute(db);
    };
    await giveWhatLacks('lacks CREATE on the schema');
    await sql.raw(`REVOKE EXECUTE ON FUNCTION scanfeed.refuse_overtaken() FROM PUBLIC, ${role}`).execute(db);
    await giveWhatLacks('lacks EXECUTE on refuse_overtaken;');
    expect(await examine({ DATABASE_URL: url.href })).toMatchObject({
      privileges: { outcome: 'ok' },
      schema: { outcome: 'ok' },
    });
    await sql.raw(`ALTER ROLE ${role} SET default_transaction_read_only = on`).execute(db);
    expect(await examine({ DATABASE_URL: url.href })).toMatchObject({
      'database writable': { outcome: 'failing', message: expect.stringContaining('default_transaction_read_only') },
    });
  });

  it('does not advise to start a daemon when no process can write', async () => {
    await setup.takeFeed({ name: 'idle', baseUrl: emulator.url });
    await setup.rows(sql`UPDATE ${tables.feeds} SET lease_holder = NULL`);
    afterwards(() => setup.rows(sql`DELETE FROM ${tables.feeds}`));
    const ofFeed = () => examine({ SCANFEED_FEED: 'idle' });
    expect(await ofFeed()).toMatchObject({
      'stored feed': { message: expect.stringContaining('start `scanfeed run`') },
    });
    afterwards(await makeReadOnly(given.url));
    expect(await ofFeed()).toMatchObject({
      'database writable': { outcome: 'failing' },
      'stored feed': { outcome: 'skipped' },
    });
  });

  it('reports a full disk as the daemon would meet it', async () => {
    await setup.rows(
      sql.raw(`CREATE FUNCTION refuse_space() RETURNS event_trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE SQLSTATE '53100'; END$$`),
    );
    await setup.rows(sql`CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION refuse_space()`);
    afterwards(async () => {
      await setup.rows(sql`DROP EVENT TRIGGER full_disk`);
      await setup.rows(sql`DROP FUNCTION refuse_space()`);
    });
    expect(await examine()).toMatchObject({
      'database writable': { outcome: 'failing', message: expect.stringMatching(/disk_full .*free space on its disk/) },
    });
  });

  it('reports what the feed fails with, and its remedy', async () => {
    await setup.takeFeed({ name: 'held', baseUrl: emulator.url });
    afterwards(() => setup.rows(sql`DELETE FROM ${tables.feeds}`));
    const held = { stage: 'feed', number: 1, kind: 'mostly_bad', message: 'half of the entries are bad; ask why' };
    const more = { held: true, runbook: 'ScanfeedErrorRatioHigh' };
    const times = { failures: 4, sinceMs: 60_000, lastMs: 1_000, nextTryMs: -29_000, endedMs: null };
    const slow = { stage: 'full', number: 2, kind: 'timeout', message: 'no answer; try again' };
    await createErrorWriter(
      setup.connection,
      'held',
      'pod',
    )([
      { ...held, ...more, ...times },
      { ...slow, ...more, ...times, sinceMs: 30_000 },
    ]);
    const message =
      /^held fails: since \S+Z, for 30\.\d s, 4 failures, next attempt in 2\d\.\d s: full timeout: no answer; try again \(runbook ScanfeedErrorRatioHigh\); since \S+Z, for 60\.\d s, 4 failures, .*: feed mostly_bad: half of the entries are bad; ask why \(runbook ScanfeedErrorRatioHigh\)$/;
    expect(await examine({ SCANFEED_FEED: 'held' })).toMatchObject({
      'stored feed': { outcome: 'failing', message: expect.stringMatching(message) },
    });
  });

  it('prints statements to paste when the reader role is missing', async () => {
    const { out, exitCode } = await run();
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^WARN {2}reader role +\S+ does not exist/m);
    for (const statement of out.split('\n').filter((line) => line.endsWith(';'))) {
      await sql.raw(statement).execute(setup.database.sql);
    }
    await withReader();
    expect(await examine()).toMatchObject({ 'reader role': { outcome: 'ok' } });
  });

  it('names the view when its columns have reached the limit', async () => {
    await withReader();
    await setup.rows(sql`
      WITH wide AS (INSERT INTO ${tables.reportViews} (name, document_type_slug, arrays) VALUES ('document_wide', 'wide', '[]') RETURNING id)
      INSERT INTO ${tables.reportColumns} (view_id, position, name, path, type)
      SELECT id, at, 'c' || at, ARRAY['c' || at], 'text' FROM wide, generate_series(1, 500) AS at`);
    afterwards(() => setup.rows(sql`TRUNCATE ${tables.reportViews} CASCADE`));
    expect(await examine()).toMatchObject({
      'typed views': {
        outcome: 'warning',
        message: expect.stringMatching(/^these views have reached the limit, .*: document_wide$/),
      },
    });
  });

  it('counts the values that do not fit their column, in the latest runs of each type, when there are any', async () => {
    await withReader();
    const feed = await setup.takeFeed({ name: 'unfit' });
    afterwards(() => emptyReports(setup));
    const commit = (slug: string, first: number, documents: readonly unknown[]) =>
      feed.commit(
        documents.map((data, index) => {
          const completedAt = new Date(Date.UTC(2026, 0, 2) + (first + index) * 1_000).toISOString();
          return entryJson({
            scanId: `${slug}-${first + index}`,
            documentType: { slug, name: slug },
            data,
            completedAt,
          });
        }),
      );
    const number = { betrag: 1, kunde: { name: 'x' }, zeilen: [{ menge: 1 }] };
    // Enough for the other shape to be an exception.
    await commit('offer', 0, Array(60).fill(number));
    await commit('order', 52, Array(248).fill(number));
    expect((await refresh(setup)).failed).toEqual([]);
    const counted = 'in the latest runs of each type, at most 250 runs and 1 MiB';
    const views = async () => (await examine())['typed views'];
    expect(await views()).toMatchObject({
      outcome: 'ok',
      message: `all can get further columns; every value fits its column (checked ${counted})`,
    });

    await commit('offer', 60, [
      { ...number, betrag: { wert: 900 } },
      { ...number, betrag: [1], zeilen: [{ menge: 'viel' }, { menge: 'mehr' }, { menge: 2 }] },
      { ...number, betrag: 'neun', kunde: 'x' },
    ]);
    // Of these, only the last two are among the latest 250.
    await commit('order', 0, Array(52).fill({ betrag: 'neun' }));
    const found = {
      outcome: 'warning',
      message: `values of another type are null in these columns, which unfit_fields names (counted ${counted}): document_offer.betrag (3), document_order.betrag (2), document_offer_zeilen.menge (2), document_offer.kunde_name (1)`,
    };
    expect(await views()).toMatchObject(found);
    await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE history_of IS NULL`);
    expect((await refresh(setup)).failed).toEqual([]);
    expect(await views()).toMatchObject(found);

    await commit('offer', 63, [{ ...number, zeilen: [{ menge: 1 }], betrag: 1, kunde: { name: [1] } }]);
    await commit('bill', 0, [{ nr: 1 }]);
    expect((await refresh(setup)).failed).toEqual([]);
    await commit('bill', 1, [{ nr: 'eins' }]);
    const [, query = ''] =
      /and \d more; to see all columns of a view, run `scanfeed sql "(.*)"`$/.exec((await views())?.message ?? '') ??
      [];
    const counts = await setup.rows(sql.raw(query.replace('VIEW', 'scanfeed_reporting.document_offer')));
    expect(counts).toContainEqual({ unfit: 'kunde_name', count: '2' });
  });

  it('names who else may read, and the other places of the reader role, when there are any', async () => {
    await withReader();
    const db = setup.database.sql;
    const login = `scanfeed_login_${process.pid}`;
    await sql.raw(`CREATE ROLE ${login} LOGIN IN ROLE ${reader}`).execute(db);
    afterwards(() => sql.raw(`DROP ROLE ${login}`).execute(db));
    const message = (text: string) => ({ 'reader role': { outcome: 'ok', message: text } });
    const readers = `; the data can also be read by ${login}`;
    expect(await examine()).toMatchObject(message(`${reader} can read every report${readers}`));
    expect(await examine({ SCANFEED_READER_ROLE: '' })).toMatchObject(
      message(`none is named (SCANFEED_READER_ROLE)${readers}`),
    );

    const other = await createTestDatabase();
    afterwards(other.drop);
    await MIGRATED.prepare(other.url);
    const database = openTestDatabase(other.url);
    afterwards(() => database.close());
    await grantReader(connectStore(database, TEST_SCHEMA), reader);
    await setup.rows(
      sql.raw(`CREATE SCHEMA b_reporting CREATE VIEW productive_runs AS SELECT;
      GRANT USAGE ON SCHEMA b_reporting TO ${reader}; GRANT SELECT ON b_reporting.productive_runs TO ${reader}`),
    );
    afterwards(() => sql.raw('DROP SCHEMA b_reporting CASCADE').execute(db));
    const { 'reader role': found } = await examine();
    expect(found).toMatchObject({
      outcome: 'warning',
      message: expect.stringContaining(
        `${reader} also has privileges in the database ${other.name}, the schema b_reporting, so its members can read all of them${readers}`,
      ),
    });
    expect(found?.statements).toContain(`REVOKE CONNECT ON DATABASE "${given.name}" FROM PUBLIC`);
    afterwards(() => sql.raw(`GRANT CONNECT ON DATABASE "${given.name}" TO PUBLIC`).execute(db));
    for (const statement of found?.statements ?? []) await sql.raw(statement).execute(db);
    expect(await examine({ SCANFEED_READER_ROLE: '' })).toMatchObject(message('none is named (SCANFEED_READER_ROLE)'));
  });

  it('names logins that can read a part, that can do so by SET ROLE, and everybody, when there are any', async () => {
    await withReader();
    const db = setup.database.sql;
    const [first = '', setsRole = '', ofView = '', ofTable = '', stranger = ''] = 'abcde'
      .split('')
      .map((letter) => `scanfeed_${letter}_${process.pid}`);
    for (const name of [first, setsRole, ofView, ofTable, stranger]) {
      await sql.raw(`CREATE ROLE ${name} ${name === first ? 'NOLOGIN' : 'LOGIN NOINHERIT'}`).execute(db);
      afterwards(() => sql.raw(`DROP OWNED BY ${name}; DROP ROLE ${name}`).execute(db));
    }
    const readers = async () => (await examine())['reader role']?.message.split('; ')[1];
    expect(await readers()).toBe(undefined);
    await sql
      .raw(`GRANT ${reader} TO ${first}; GRANT ${first} TO ${setsRole};
      GRANT USAGE ON SCHEMA scanfeed_reporting TO ${ofView}; GRANT SELECT ON scanfeed_reporting.sync_status TO ${ofView};
      GRANT USAGE ON SCHEMA scanfeed TO ${ofTable}; GRANT SELECT (data) ON scanfeed.run_history TO ${ofTable};
      GRANT SELECT ON ALL TABLES IN SCHEMA scanfeed TO ${stranger}`)
      .execute(db);
    const named = `${setsRole}, ${ofView} (scanfeed_reporting.sync_status), ${ofTable} (scanfeed.run_history)`;
    expect(await readers()).toBe(`the data can also be read by ${named}`);
    await sql
      .raw('GRANT USAGE ON SCHEMA scanfeed TO PUBLIC; GRANT SELECT ON scanfeed.runs, scanfeed.feeds TO PUBLIC')
      .execute(db);
    afterwards(() =>
      sql
        .raw('REVOKE USAGE ON SCHEMA scanfeed FROM PUBLIC; REVOKE SELECT ON scanfeed.runs, scanfeed.feeds FROM PUBLIC')
        .execute(db),
    );
    expect(await readers()).toMatch(/^the data can also be read by PUBLIC \(scanfeed.feeds\), /);
  });

  it('fails when the encoding cannot store all text', async () => {
    const name = `${given.name}_latin`;
    const db = setup.database.sql;
    await sql.raw(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'`).execute(db);
    afterwards(() => sql.raw(`DROP DATABASE ${name} WITH (FORCE)`).execute(db));
    const url = new URL(given.url);
    url.pathname = `/${name}`;
    expect(await examine({ DATABASE_URL: url.href })).toMatchObject({
      'database encoding': { outcome: 'failing', message: expect.stringContaining('SQL_ASCII') },
      schema: { outcome: 'failing' },
    });
  });

  it('names feeds that no process leads and that have pending results or open entries', async () => {
    const left = await setup.takeFeed({ name: 'left' });
    await commitPending(left, { scanId: 'left pending' });
    await (await setup.takeFeed({ name: 'gone' })).commit([entryJson({ scanId: 'left bad', status: 'odd' })]);
    const retired = async () => (await examine())['retired feeds'];
    const reported = (message: RegExp) => ({ outcome: 'warning', message: expect.stringMatching(message) });
    expect(await retired()).toMatchObject({ outcome: 'ok' });
    await setup.rows(sql`DELETE FROM ${tables.feeds} WHERE name = 'gone'`);
    expect(await retired()).toMatchObject(
      reported(/^gone has 0 pending results and 1 open entry in quarantine, and .*`scanfeed forget gone --to OTHER`$/),
    );
    await setup.store.releaseLease(left.lease);
    expect(await retired()).not.toMatchObject(reported(/left has/));
    await setup.rows(sql`UPDATE ${tables.feeds} SET last_commit_at = now() - interval '1 hour',
      created_at = now() - interval '1 hour' WHERE name = 'left'`);
    expect(await retired()).toMatchObject(reported(/left has 1 pending result and 0 open entries in quarantine/));
    await setup.operatorStore.pending.giveUp('left', new Map([['left pending', 1]]));
    expect(await retired()).not.toMatchObject(reported(/left has/));
    await setup.rows(sql`DELETE FROM ${tables.quarantine}`);
  });

  it('reports the leader, and the address of the feed, when the feed belongs to another address', async () => {
    const feed = await setup.takeFeed({ name: 'doctored', baseUrl: emulator.url });
    expect(await examine({ SCANFEED_FEED: 'doctored' })).toMatchObject({
      'stored feed': { outcome: 'ok', message: expect.stringMatching(/^doctored is led by /) },
    });
    expect(feed).toBeDefined();
    await sql`UPDATE ${tables.feeds} SET base_url = 'https://moved.example/v1'`.execute(setup.database.sql);
    expect(await examine({ SCANFEED_FEED: 'doctored' })).toMatchObject({
      'stored feed': { outcome: 'failing', message: expect.stringContaining('run `scanfeed forget doctored`') },
    });
  });
});

const program = findPgBouncer();
it.runIf(program !== null).each([
  ['transaction', 'ok', 'transaction mode'],
  ['session', 'ok', 'session mode: requires 8 server connections'],
  ['statement', 'failing', 'set pool_mode = transaction'],
] as const)(
  'reports the pool mode when the database is behind PgBouncer in %s mode',
  async (mode, outcome, message) => {
    const bouncer = await startPgBouncer(program ?? '', given.url, 4, mode);
    afterwards(() => bouncer.stop());
    const { pooler } = await examine({ DATABASE_URL: bouncer.url });
    expect(pooler).toMatchObject({ outcome, message: expect.stringContaining(message) });
  },
);

/** Returns everything in the database that a command could change. */
async function snapshot() {
  const [row] = await setup.rows(sql<{ written: string; roles: number }>`
    SELECT (SELECT string_agg(relname || ' ' || n_tup_ins + n_tup_upd + n_tup_del, ', ' ORDER BY relname)
        FROM pg_stat_user_tables) AS written,
      (SELECT count(*)::int FROM pg_class) AS relations`);
  return row;
}
