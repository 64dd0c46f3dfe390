import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as sqlCommand from '../../../src/cli/commands/sql.js';
import { grantReader } from '../../../src/storage/reporting/reader-role.js';
import { grantDaemon } from '../../../src/storage/schema/daemon-role.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { connectionOf, MIGRATED, tables, useStore } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const READER = `scanfeed_sql_${process.pid}`;

beforeAll(async () => {
  await grantReader(setup.connection, READER);
  const feed = await setup.takeFeed();
  await feed.commit([
    entryJson({ scanId: 'a', fileName: 'comma, "quoted".pdf', partnerName: null }),
    entryJson({ scanId: 'b', fileName: '', partnerName: '\u001b[2Jred', ocrConfidence: 1 }),
  ]);
});
afterAll(async () => {
  await setup.rows(sql.raw(`DROP OWNED BY ${READER} CASCADE; DROP ROLE ${READER}`));
});

const run = (
  query: string,
  option: readonly string[] = [],
  role = READER,
  { url = given.url, ...setting }: { readonly url?: string } & Pick<CommandSetting, 'reader' | 'columns'> = {},
) =>
  runCommand(sqlCommand, ['sql', ...option, query], {
    env: { DATABASE_URL: url, SCANFEED_READER_ROLE: role },
    ...setting,
  });

describe('sql', () => {
  it('prints an aligned table of the views, whose names need no schema', async () => {
    expect(await run('SELECT scan_id, revision, partner_name FROM runs ORDER BY scan_id')).toEqual({
      exitCode: 0,
      out: 'scan_id  revision  partner_name\na               1\nb               1  \ufffd[2Jred\n',
      err: '2 rows\n',
    });
  });

  it('shows rows that are wider than the terminal as records', async () => {
    const wide = "SELECT scan_id, repeat('x', 70) AS long_value, 1 AS n FROM runs ORDER BY 1";
    const record = (n: number, id: string) =>
      `-[ RECORD ${n} ]-\nscan_id    | ${id}\nlong_value | ${'x'.repeat(70)}\nn          | 1\n`;
    expect((await run(wide, [], READER, { columns: 80 })).out).toBe(record(1, 'a') + record(2, 'b'));
    expect((await run(wide, [], READER, { columns: 200 })).out).toMatch(/^scan_id {2}long_value .* n\na /);
  });

  it('explains a query, which may begin with a comment, without running what would write', async () => {
    const commented = '-- a plan\n/* of\ntwo */ EXPLAIN (COSTS off) SELECT 1';
    expect(await run(commented, [], READER, { columns: 20 })).toMatchObject({
      exitCode: 0,
      out: 'QUERY PLAN\nResult\n',
    });
    expect((await run('-- one\nSELECT 1 AS a')).out).toBe('a\n1\n');
    const { exitCode, err } = await run('EXPLAIN ANALYZE DELETE FROM runs', [], '');
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: expect.stringContaining('(SQLSTATE 25006)') });
  });

  it('runs a query below many lines of comments', async () => {
    const { out } = await run(`${'/* a line of the header **/\n'.repeat(29)}SELECT 1 AS one`, ['--csv']);
    expect(out).toBe('one\r\n1\r\n');
  }, 10_000);

  it('reads the query from a file, and tells a misspelt option from a comment', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sql-'));
    await writeFile(join(folder, 'q.sql'), 'SELECT 1 AS a;\n');
    const env = { DATABASE_URL: given.url };
    const ofFile = (name: string) => runCommand(sqlCommand, ['sql', '--file', join(folder, name)], { env });
    expect(await ofFile('q.sql')).toMatchObject({ exitCode: 0, out: 'a\n1\n' });
    expect(await ofFile('missing.sql')).toMatchObject({ exitCode: 1, err: expect.stringContaining('(ENOENT)') });
    expect(await run('--cvs')).toMatchObject({ exitCode: 64, err: "scanfeed: unknown option '--cvs'\n" });
    await rm(folder, { recursive: true });
  });

  it('uses the database of the demo in its folder, unless another one is configured', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'demo-'));
    await mkdir(join(folder, '.scanfeed'));
    await writeFile(join(folder, '.scanfeed', 'database-url'), given.url);
    const before = process.cwd();
    process.chdir(folder);
    try {
      const asked = (env: Record<string, string>) => runCommand(sqlCommand, ['sql', 'SELECT 1 AS a'], { env });
      expect(await asked({})).toMatchObject({ exitCode: 0, out: 'a\n1\n' });
      expect(await asked({ DATABASE_URL: given.url.replace(/\/[^/]*$/, '/missing') })).not.toMatchObject({
        exitCode: 0,
      });
    } finally {
      process.chdir(before);
      await rm(folder, { recursive: true });
    }
  });

  it('runs the query with the rights of its own login when no role is named', async () => {
    const { out } = await run('SELECT current_user, count(*) FROM runs', ['--csv'], '');
    expect(out).toBe(`current_user,count\r\n${connectionOf(given.url).user},2\r\n`);
  });

  it('has no report compiled, which takes longer than most reports', async () => {
    expect((await run("SELECT current_setting('jit')", ['--csv'])).out).toBe('current_setting\r\noff\r\n');
  });

  it('prints the first thousand rows as a table, and all of them otherwise', async () => {
    const { out, err } = await run('SELECT generate_series(1, 2345) AS n');
    expect([out.split('\n').length, err]).toEqual([1_002, 'the first 1000 rows; --csv and --json print all\n']);
    const all = JSON.parse((await run('SELECT generate_series(1, 2345) AS n', ['--json'])).out);
    expect([all.length, all.at(-1)]).toEqual([2_345, { n: 2_345 }]);
  });

  it('escapes control characters at a terminal and keeps them elsewhere', async () => {
    const query = "SELECT E'\\x1b]0;title\\x07\\u009b2J\\u202e\\r\\t\\U000e0001' AS text";
    const raw = '\u001b]0;title\u0007\u009b2J\u202e\r\t\u{e0001}';
    const terminal = { columns: 80 };
    expect((await run(query, ['--csv'])).out).toBe(`text\r\n"${raw}"\r\n`);
    expect((await run(query, ['--csv'], READER, terminal)).out).toBe(
      'text\r\n"\\u001b]0;title\\u0007\\u009b2J\\u202e\\u000d\t\\udb40\\udc01"\r\n',
    );
    const json = (await run(query, ['--json'], READER, terminal)).out;
    expect(json).toMatch(/^[\x20-\x7e\n]*$/);
    expect(JSON.parse(json)).toEqual([{ text: raw }]);
    expect((await run(query, ['--json'])).out).toContain('\u009b2J\u202e');
  });

  it('prints JSON with every digit when --json is given', async () => {
    const query = `SELECT 98765432109876543210.10 AS big, 9007199254740993::bigint AS id, 'NaN'::numeric AS nan, NULL AS none,
      true AS yes, '{"a": 1.10}'::jsonb AS json, E'"\\n' AS text`;
    expect((await run(query, ['--json'])).out).toBe(
      '[{"big":98765432109876543210.10,"id":9007199254740993,"nan":"NaN","none":null,"yes":true,"json":{"a": 1.10},"text":"\\"\\n"}]\n',
    );
    expect((await run('SELECT 1 WHERE false', ['--json'])).out).toBe('[]\n');
  });

  it('prints arrays as JSON when --json is given, with every digit', async () => {
    const query = `SELECT ARRAY['a"', 'b,c', NULL, 'NULL'] AS text, ARRAY[[1.10, 'NaN']] AS number, '{}'::int[] AS none,
      ARRAY['{"a": 1.10}'::jsonb] AS json, ARRAY[true] AS yes, ARRAY['2026-01-31'::date] AS day`;
    expect((await run(query, ['--json'])).out).toBe(
      '[{"text":["a\\"","b,c",null,"NULL"],"number":[[1.10,"NaN"]],"none":[],"json":[{"a": 1.10}],"yes":[true],"day":"{2026-01-31}"}]\n',
    );
  });

  it('refuses two columns of one name when --json is given, which could not have both', async () => {
    const { exitCode, out, err } = await run('SELECT 1 AS a, 2 AS a', ['--json']);
    expect([exitCode, out, err]).toEqual([
      1,
      '',
      'scanfeed: two columns are named "a"; rename one with AS for --json\n',
    ]);
  });

  it.each(['--csv', '--json'])(
    'reads no further when the program that reads its output with %s has ended',
    async (option) => {
      let batches = 0;
      const { exitCode } = await run('SELECT generate_series(1, 100000)', [option], READER, {
        reader: () => {
          batches += 1;
          return batches < 3;
        },
      });
      expect([exitCode, batches]).toEqual([0, 3]);
    },
  );

  it('fetches fewer rows at once when they are long', async () => {
    const lengths: number[] = [];
    const reader = (out: string) => lengths.push(out.length) > 0;
    await run(`SELECT repeat('x', 1000000) FROM generate_series(1, 10)`, ['--csv'], READER, { reader });
    const batches = lengths.map((length, index) => length - (lengths[index - 1] ?? 0));
    expect(Math.max(...batches)).toBeLessThan(5_000_000);
    expect(lengths.at(-1)).toBeGreaterThan(10_000_000);
  });

  it('cuts long values in a table, and no line of others is padded beyond', async () => {
    const { out } = await run(`SELECT text, 'end' AS last FROM unnest(ARRAY['short', repeat('x', 1000000)]) AS text`);
    const [, short, long] = out.split('\n');
    expect([short?.length, long?.length]).toEqual([1_005, 1_005]);
    expect(long).toMatch(/x… {2}end$/);
  });

  it('prints comma-separated values that tell NULL from an empty text when --csv is given', async () => {
    const { out } = await run('SELECT file_name, partner_name FROM runs ORDER BY scan_id', ['--csv']);
    expect(out).toBe('file_name,partner_name\r\n"comma, ""quoted"".pdf",\r\n"",\u001b[2Jred\r\n');
    expect((await run('SELECT 1 AS n WHERE false', ['--csv'])).out).toBe('n\r\n');
  });

  it.each([
    ['SELECT * FROM scanfeed.runs', 'permission denied for schema scanfeed (SQLSTATE 42501)'],
    ['SELECT 1; COMMIT; DROP TABLE scanfeed.runs', 'cannot insert multiple commands into a prepared statement'],
    [
      'DELETE FROM runs',
      'syntax error at or near "DELETE" (SQLSTATE 42601); it must be one SELECT, VALUES, WITH or EXPLAIN',
    ],
    ["SELECT nextval('scanfeed.change_seq')", 'permission denied'],
    ['WITH gone AS (DELETE FROM runs RETURNING *) SELECT * FROM gone', 'must not contain data-modifying statements'],
    ['SELECT nix FROM runs', 'column "nix" does not exist (SQLSTATE 42703); the view columns lists'],
    ['SELECT * FROM nix', 'relation "nix" does not exist (SQLSTATE 42P01); the view columns lists'],
    ['SELECT scan_idd FROM runs', '(hint: Perhaps you meant to reference the column "runs.scan_id".) (SQLSTATE 42703)'],
    ['SELECT 1/0', 'division by zero (SQLSTATE 22012)'],
    [`SELECT E'a\\n\\x1b[31mb'::int`, 'invalid input syntax for type integer: "a\ufffd\ufffd[31mb" (SQLSTATE 22P02)'],
  ])('refuses %s', async (query, reason) => {
    const { exitCode, out, err } = await run(query);
    expect([exitCode, out]).toEqual([1, '']);
    expect(err).toContain(`PostgreSQL refused the query: `);
    expect(err).toContain(reason);
    expect(err.trimEnd()).not.toContain('\n');
    expect(await setup.rows(sql`SELECT FROM ${tables.runs}`)).toHaveLength(2);
  });

  it('reports a lost connection in one line when it is lost during the query', async () => {
    const proxy = await TcpProxy.to(given.url);
    const reader = () => {
      proxy.cutAll('reset');
      return true;
    };
    const { exitCode, err } = await run('SELECT generate_series(1, 2)', ['--csv'], READER, {
      reader,
      url: proxy.urlOf(given.url),
    });
    await proxy.close();
    expect([exitCode, err]).toEqual([
      75,
      'scanfeed: the connection to PostgreSQL failed (ECONNRESET); check the network and any pooler in between\n',
    ]);
  });

  it('names the missing grant when its login is not a member of the role', async () => {
    const login = `scanfeed_login_${process.pid}`;
    await setup.rows(sql.raw(`CREATE ROLE ${login} LOGIN PASSWORD 'secret'`));
    await grantDaemon(setup.connection, login);
    const url = new URL(given.url);
    Object.assign(url, { username: login, password: 'secret' });
    const runAsLogin = () => run('SELECT 1 AS n', [], READER, { url: url.href });
    const refused = await runAsLogin();
    const grant = /let an administrator run: (GRANT .*)\n$/.exec(refused.err)?.[1] ?? refused.err;
    await setup.rows(sql.raw(grant));
    const granted = await runAsLogin();
    await setup.rows(sql.raw(`DROP OWNED BY ${login}; DROP ROLE ${login}`));
    expect([refused.exitCode, granted.out]).toEqual([1, 'n\n1\n']);
  });

  it('does not run with other rights when the role does not exist', async () => {
    const { exitCode, err } = await run('SELECT 1', [], 'scanfeed_nobody');
    expect(exitCode).toBe(1);
    expect(err).toContain(
      'the role scanfeed_nobody cannot be used: role "scanfeed_nobody" does not exist; see the check',
    );
  });
});
