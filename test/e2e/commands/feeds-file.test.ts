import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as backfill from '../../../src/cli/commands/backfill.js';
import * as doctor from '../../../src/cli/commands/doctor.js';
import * as erase from '../../../src/cli/commands/erase.js';
import * as forget from '../../../src/cli/commands/forget.js';
import * as get from '../../../src/cli/commands/get.js';
import * as migrate from '../../../src/cli/commands/migrate.js';
import * as quarantine from '../../../src/cli/commands/quarantine.js';
import * as rewind from '../../../src/cli/commands/rewind.js';
import * as sqlCommand from '../../../src/cli/commands/sql.js';
import * as status from '../../../src/cli/commands/status.js';
import * as submit from '../../../src/cli/commands/submit.js';
import * as verify from '../../../src/cli/commands/verify.js';
import * as views from '../../../src/cli/commands/views.js';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { createStore } from '../../../src/storage/store.js';
import { type CommandModule, type CommandRun, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { pdf } from '../../support/pdfs.js';
import { useDatabase } from '../../support/postgres/index.js';
import { useStore } from '../../support/store.js';
import { syncToTheEnd } from '../../support/sync-to-the-end.js';

/** Two organizations, each with its service, key and schema. */
const NAMES = ['acme', 'globex'] as const;
const given = useDatabase();
const setup = useStore(given);
const folder = mkdtempSync(join(tmpdir(), 'feeds-'));
const FILE = join(folder, 'feeds.yaml');
const emulators = new Map<string, Emulator>();
const reader = `scanfeed_reader_${process.pid}`;

const emulatorOf = (name: string) => emulators.get(name) as Emulator;
const entryOf = (name: string) =>
  `- name: ${name}\n  baseUrl: ${emulatorOf(name).url}\n  apiKeyFile: ${join(folder, name)}\n  schema: schema_${name}\n`;
const write = (text: string) => writeFileSync(FILE, text);
const run = (module: CommandModule, args: readonly string[], env: Record<string, string> = {}): Promise<CommandRun> =>
  runCommand(module, args, {
    env: { DATABASE_URL: given.url, SCANFEED_FEEDS_FILE: FILE, SCANFEED_READER_ROLE: reader, ...env },
  });
const outOf = async (module: CommandModule, args: readonly string[]) => (await run(module, args)).out;

beforeAll(async () => {
  for (const name of NAMES) {
    const emulator = await startEmulator({ history: 0, apiKeys: [{ key: `key-of-${name}`, organization: name }] });
    emulators.set(name, emulator);
    writeFileSync(join(folder, name), emulator.apiKey);
    const fields = { scanId: `scan-of-${name}`, deliveredAt: new Date(Date.now() - 3_600_000).toISOString() };
    emulator.appendRaw([{ text: entryJson(fields), deliveredAt: fields.deliveredAt }]);
  }
  write(NAMES.map(entryOf).join(''));
  expect(JSON.parse(await outOf(migrate, ['migrate', '--json']))).toMatchObject([
    { schema: 'scanfeed', result: { readerRole: null }, failure: null }, // of the processes
    {
      schema: 'schema_acme',
      result: { applied: (await readMigrations()).map(({ version, name }) => `${version} ${name}`) },
    },
    { schema: 'schema_globex', failure: null },
  ]);
  for (const name of NAMES) {
    const options = { pendingRetryMs: 30_000, keptDays: null, monotonic: () => performance.now() };
    const store = createStore(setup.database, { ...options, schema: `schema_${name}` });
    await syncToTheEnd(emulatorOf(name), store, name);
    await setup.rows(sql`UPDATE ${sql.id(`schema_${name}`, 'feeds')} SET base_url = ${emulatorOf(name).url}`);
  }
});
afterAll(async () => {
  for (const emulator of emulators.values()) await emulator.close();
  await setup.rows(sql`DROP OWNED BY ${sql.id(reader)}`);
  await setup.rows(sql`DROP ROLE ${sql.id(reader)}`);
  rmSync(folder, { recursive: true });
});
beforeEach(() => write(NAMES.map(entryOf).join('')));

describe('commands with a feeds file', () => {
  it.each([
    [rewind, ['rewind', '--list']],
    [backfill, ['backfill', '--cancel']],
    [get, ['get', 'scan-of-globex']],
  ])('ask for --feed when the file lists several feeds: %#', async (module, args) => {
    expect(await run(module, args)).toEqual({
      exitCode: 64,
      out: '',
      err: 'scanfeed: the feeds file lists acme, globex; choose one with --feed\n',
    });
  });

  it.each([
    [erase, ['erase', '--yes', '--scan-id', 'none']],
    [sqlCommand, ['sql', 'SELECT 1']],
    [views, ['views', 'list']],
    [forget, ['forget', 'former']],
  ])('ask for --feed when the feeds have different schemas: %#', async (module, args) => {
    expect(await run(module, args)).toMatchObject({ exitCode: 64, err: expect.stringContaining('different schemas') });
  });

  it('name the feeds when the file does not list the feed', async () => {
    expect(await run(rewind, ['rewind', '--list', '--feed', 'former'])).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('does not list the feed "former", only acme, globex;'),
    });
  });

  it('report the mistakes of the feed, and not those of others', async () => {
    write(`${entryOf('acme')}${entryOf('globex')}  pollInterval: 5\n`);
    expect(await run(rewind, ['rewind', '--list', '--feed', 'acme'])).toMatchObject({ exitCode: 0 });
    expect(await run(rewind, ['rewind', '--list', '--feed', 'globex'])).toMatchObject({
      exitCode: 78,
      err: expect.stringContaining('feeds.yaml line 9, feed globex, pollInterval is "5"'),
    });
  });

  it('use the only feed when the file lists one', async () => {
    write(entryOf('globex'));
    expect(await run(rewind, ['rewind', '--list'])).toMatchObject({ exitCode: 0 });
    expect(await run(sqlCommand, ['sql', '--csv', 'SELECT scan_id FROM runs'])).toMatchObject({
      out: 'scan_id\r\nscan-of-globex\r\n',
    });
  });

  it('reject --feed for a choice of settings when there is no file', async () => {
    const env = { SCANFEED_FEEDS_FILE: '', SCANFEED_BASE_URL: emulatorOf('acme').url, SCANFEED_API_KEY: 'key-of-acme' };
    expect(await run(sqlCommand, ['sql', 'SELECT 1', '--feed', 'acme'], env)).toMatchObject({
      exitCode: 64,
      err: 'scanfeed: --feed requires SCANFEED_FEEDS_FILE\n',
    });
    expect(await run(verify, ['verify', '--since', '24h', '--all'], env)).toMatchObject({
      exitCode: 64,
      err: 'scanfeed: --all requires SCANFEED_FEEDS_FILE\n',
    });
  });
});

it('submit and get use the address and the key of the feed', async () => {
  const path = join(folder, 'invoice.pdf');
  writeFileSync(path, pdf('invoice'));
  const args = ['submit', path, '--document-type', 'rechnung', '--environment', 'test', '--feed', 'globex', '--json'];
  const [{ scanId }] = JSON.parse(await outOf(submit, args));
  expect(JSON.parse(await outOf(get, ['get', scanId, '--feed', 'globex']))).toMatchObject({ scanId });
  expect(await run(get, ['get', scanId, '--feed', 'acme'])).toMatchObject({ exitCode: 1 });
});

it('sql, views and erase use the schema of the feed', async () => {
  expect(await outOf(sqlCommand, ['sql', '--csv', 'SELECT scan_id FROM runs', '--feed', 'acme'])).toContain('acme');
  expect(await run(views, ['views', 'list', '--feed', 'acme'])).toMatchObject({ exitCode: 0 });
  const erased = await outOf(erase, ['erase', '--yes', '--json', '--feed', 'acme', '--scan-id', 'scan-of-globex']);
  expect(JSON.parse(erased)).toMatchObject([{ scanId: 'scan-of-globex', stored: false }]);
});

it('migrate and views let only the reader role of the feed read its schema', async () => {
  const other = `scanfeed_reader_of_globex_${process.pid}`;
  write(`${entryOf('acme')}${entryOf('globex')}  readerRole: ${other}\n`);
  await setup.rows(sql`DROP OWNED BY ${sql.id(reader)}`); // the rights of before
  expect(await run(migrate, ['migrate'])).toMatchObject({ exitCode: 0, err: '' });
  for (const name of NAMES) {
    expect(await run(views, ['views', 'refresh', '--feed', name])).toMatchObject({ exitCode: 0 });
  }
  const readable = await setup.rows(sql<{ role: string; schema: string; views: number; typed: number }>`
    SELECT rolname::text AS role, nspname::text AS schema, count(*)::int AS views,
      (count(*) FILTER (WHERE relname LIKE 'document%'))::int AS typed
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace, pg_roles
    WHERE rolname IN (${reader}, ${other}) AND nspname LIKE 'schema\\_%\\_reporting' AND relkind = 'v'
      AND has_schema_privilege(rolname, nspname, 'USAGE') AND has_table_privilege(rolname, pg_class.oid, 'SELECT')
    GROUP BY 1, 2 ORDER BY 1, 2`);
  await setup.rows(sql`DROP OWNED BY ${sql.id(other)}`);
  await setup.rows(sql`DROP ROLE ${sql.id(other)}`);
  const all = { views: readable[0]?.views, typed: 2 };
  expect(readable).toEqual([
    { role: reader, schema: 'schema_acme_reporting', ...all },
    { role: other, schema: 'schema_globex_reporting', ...all },
  ]);
});

describe('migrate with a feeds file', () => {
  const NEWER = sql`INSERT INTO schema_acme.migrations (version, name, works_from) VALUES (9999, 'newer', 9999)`;
  beforeEach(() => setup.rows(NEWER));
  afterEach(() => setup.rows(sql`DELETE FROM schema_acme.migrations WHERE version = 9999`));

  it('migrates the others when a schema fails', async () => {
    expect(await run(migrate, ['migrate'])).toEqual({
      exitCode: 1,
      out: 'The schema scanfeed is up to date.\nThe schema schema_globex is up to date.\n',
      err: expect.stringMatching(
        /^scanfeed: schema schema_acme: the schema .* too new .*\nscanfeed: failed for 1 of 3 schemas\n$/,
      ),
    });
  });

  it('prints the result and the failure of each schema when --json is given', async () => {
    const { exitCode, out, err } = await run(migrate, ['migrate', '--json']);
    expect(JSON.parse(out)).toEqual([
      { schema: 'scanfeed', result: { schema: 'scanfeed', applied: [], readerRole: null }, failure: null },
      { schema: 'schema_acme', result: null, failure: expect.stringContaining('too new for this release') },
      {
        schema: 'schema_globex',
        result: { schema: 'schema_globex', applied: [], readerRole: true },
        failure: null,
      },
    ]);
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: 'scanfeed: failed for 1 of 3 schemas\n' });
  });
});

describe('status with a feeds file', () => {
  const feedsIn = ({ out }: CommandRun) => (JSON.parse(out) as { feed: string }[]).map(({ feed }) => feed);

  it('shows the feeds of all schemas', async () => {
    const { exitCode, out } = await run(status, ['status']);
    expect(out.match(/^Feed: .* of /gm)).toEqual([expect.stringContaining('acme'), expect.stringContaining('globex')]);
    expect(exitCode).toBe(0);
    expect(feedsIn(await run(status, ['status', '--all', '--json']))).toEqual(['acme', 'globex']);
  });

  it('shows only the feed of --feed', async () => {
    expect(feedsIn(await run(status, ['status', '--json', '--feed', 'globex']))).toEqual(['globex']);
  });

  it('shows the others when a schema is missing or an entry is invalid', async () => {
    const added = entryOf('acme').replaceAll('name: acme', 'name: initech').replace('schema_acme', 'schema_initech');
    write(`${entryOf('acme')}${added}`);
    const missing = await run(status, ['status', '--json']);
    expect(feedsIn(missing)).toEqual(['acme']);
    expect(missing).toMatchObject({ exitCode: 1, err: expect.stringContaining('scanfeed: schema schema_initech: ') });
    write(`${entryOf('acme')}${entryOf('globex')}  start: never\n`);
    const invalid = await run(status, ['status', '--json']);
    expect(feedsIn(invalid)).toEqual(['acme']);
    expect(invalid).toMatchObject({ exitCode: 78, err: expect.stringContaining('feed globex, start is "never"') });
  });

  it('reports the failure, and not an empty file, when no schema can be read', async () => {
    write(NAMES.map((name) => entryOf(name).replace('schema_', 'missing_')).join(''));
    const { exitCode, out, err } = await run(status, ['status']);
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' });
    expect(err).toMatch(/^scanfeed: schema missing_globex: .*\nscanfeed: schema missing_acme: .*\n$/);
  });

  it('says so when the file lists no feed', async () => {
    write('[]');
    expect(await run(status, ['status'])).toMatchObject({ exitCode: 0, out: 'The feeds file lists no feed.\n' });
  });
});

describe('--all', () => {
  it('runs a command for each feed, with a heading', async () => {
    const { exitCode, out } = await run(quarantine, ['quarantine', 'list', '--all']);
    expect(out).toBe(
      'Feed acme\nNo open entries of the feed acme.\n\nFeed globex\nNo open entries of the feed globex.\n',
    );
    expect(exitCode).toBe(0);
  });

  it('prints an array with the result and the failure of each feed when --json is given', async () => {
    write(`${NAMES.map(entryOf).join('')}- name: initech\n  start: never\n`);
    const { exitCode, out, err } = await run(quarantine, ['quarantine', 'list', '--all', '--json']);
    expect(JSON.parse(out)).toEqual([
      { feed: 'acme', result: [], failure: null },
      { feed: 'globex', result: [], failure: null },
      { feed: 'initech', result: null, failure: expect.stringContaining('feed initech, start is "never"') },
    ]);
    expect({ exitCode, err }).toEqual({ exitCode: 78, err: 'scanfeed: failed for 1 of 3 feeds\n' });
  });

  it('verifies each feed and exits with the worst code', async () => {
    expect(await run(verify, ['verify', '--since', '24h', '--all'])).toMatchObject({ exitCode: 0 });
    // Nothing was delivered to globex in the last minute, which alone would be 75.
    const late = { scanId: 'late', deliveredAt: new Date(Date.now() - 50_000).toISOString() };
    emulatorOf('acme').appendRaw([{ text: entryJson(late), deliveredAt: late.deliveredAt }]);
    expect(await run(verify, ['verify', '--since', '1m', '--all', '--feed', 'acme'])).toMatchObject({ exitCode: 64 });
    await setup.rows(sql`UPDATE schema_acme.feeds SET data_complete_as_of = clock_timestamp()`);
    const { exitCode, out } = await run(verify, ['verify', '--since', '1m', '--all', '--json']);
    expect(JSON.parse(out)).toMatchObject([
      { feed: 'acme', result: { differences: [{ scanId: 'late', what: 'missing' }] }, failure: expect.any(String) },
      {
        feed: 'globex',
        result: { summary: { compared: 0 } },
        failure: expect.stringContaining('nothing was compared'),
      },
    ]);
    expect(exitCode).toBe(1);
  });

  it('checks the installation of each feed', async () => {
    const { out } = await run(doctor, ['doctor', '--all', '--json']);
    const results = JSON.parse(out) as { feed: string; result: { findings: { check: string; message: string }[] } }[];
    const schemas = results.map(
      ({ result: { findings } }) => findings.find(({ check }) => check === 'schema')?.message,
    );
    expect(schemas).toEqual([
      expect.stringContaining('schema_acme is at version'),
      expect.stringContaining('schema_globex is at version'),
    ]);
  });
});

it('doctor checks the feed of --feed, and names the mistakes in its entry', async () => {
  write(`${entryOf('acme')}${entryOf('globex')}  start: never\n`);
  expect((await run(doctor, ['doctor'])).err).toContain('lists acme, globex; choose one with --feed, or --all');
  expect(await outOf(doctor, ['doctor', '--feed', 'acme'])).toMatch(/^ok +delivery feed +responds/m);
  const { exitCode, err } = await run(doctor, ['doctor', '--feed', 'globex']);
  expect(err).toMatch(/feeds\.yaml line 9, feed globex, start is "never"/);
  expect(exitCode).toBe(78);
});
