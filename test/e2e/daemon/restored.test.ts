import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, test } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/demo/embedded-postgres/index.js';
import { eventually } from '../../support/program/daemon.js';
import { type ServiceDouble, useProgram } from '../../support/program/setup.js';

const setup = useProgram();

/** The increment that docs/restoring.md recommends: past every number that a reader can have seen. */
const SKIP_NUMBERS = `SELECT setval('scanfeed.change_seq', last_value + 1000000000) FROM scanfeed.change_seq`;

async function startServer(directory: string): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ directory });
  setup.hide({ server: new URL(server.url).password });
  setup.afterwards(() => server.stop());
  return server;
}

/** Copies the folder of a stopped server, with file owners. */
async function copyOf(directory: string): Promise<string> {
  const copy = join(await temporaryFolder(), 'copy');
  await promisify(execFile)('cp', ['-a', directory, copy]);
  return copy;
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-restored-'));
  await chmod(folder, 0o711); // the server may run under another account
  setup.afterwards(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a daemon until everything that the service lists is stored. */
async function follow(service: ServiceDouble, server: EmbeddedPostgres): Promise<void> {
  const daemon = setup.daemon(setup.environment(service, server));
  await daemon.catchesUp();
  await daemon.stop();
}

async function query<R extends pg.QueryResultRow>(server: EmbeddedPostgres, sql: string, values: unknown[] = []) {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query<R>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** A reader that keeps its own copy and continues after the highest number that it has seen. */
function incrementalReader(other?: { readonly revisions: ReadonlyMap<string, number>; readonly seen: () => string }) {
  const revisions = new Map(other?.revisions);
  let seen = other?.seen() ?? '0';
  return {
    revisions,
    seen: () => seen,
    read: async (server: EmbeddedPostgres) => {
      const rows = await query<{ scan_id: string; revision: number; change_seq: string }>(
        server,
        'SELECT scan_id, revision, change_seq FROM scanfeed.runs WHERE change_seq > $1 ORDER BY change_seq',
        [seen],
      );
      for (const { scan_id, revision } of rows) revisions.set(scan_id, revision);
      seen = rows.at(-1)?.change_seq ?? seen;
      return rows.length;
    },
  };
}

async function stored(server: EmbeddedPostgres): Promise<Map<string, number>> {
  const rows = await query<{ scan_id: string; revision: number }>(
    server,
    'SELECT scan_id, revision FROM scanfeed.runs',
  );
  return new Map(rows.map(({ scan_id, revision }) => [scan_id, revision]));
}

test('stores everything again, also for readers, when the database was restored from a copy', async () => {
  const service = await setup.startService();
  const truth = new Map<string, number>();
  const deliver = (count: number) => {
    for (const scanId of service.deliver(count)) truth.set(scanId, 1);
  };
  const correct = (from: number, to: number) => {
    for (const scanId of [...truth.keys()].slice(from, to)) truth.set(scanId, service.correct(scanId).revision);
  };
  const reader = incrementalReader();

  const original = await temporaryFolder();
  let server = await startServer(original);
  deliver(250);
  await follow(service, server);
  expect(await reader.read(server)).toBe(250);
  await server.stop();
  const copies = [await copyOf(original), await copyOf(original)] as const;

  server = await startServer(original);
  deliver(30);
  correct(0, 20);
  await follow(service, server);
  expect(await reader.read(server)).toBe(50);
  await server.stop();

  /** Simulates the loss of the original with everything after the copy, while its reader continues. */
  const restore = async (copy: string) => {
    server = await startServer(copy);
    expect((await stored(server)).size).toBe(250);
    await query(server, SKIP_NUMBERS);
    await follow(service, server);
    expect(await stored(server)).toEqual(truth);
    const outlived = incrementalReader(reader);
    await outlived.read(server);
    expect(outlived.revisions).toEqual(truth);
    await server.stop();
  };
  correct(10, 15);
  await restore(copies[0]);
  // From here on the service also rejects the cursors of that time.
  service.invalidateCursors();
  correct(15, 18);
  await restore(copies[1]);
});

test('creates no schema when its own is renamed while it runs, and continues when it is back', {
  timeout: 120_000,
}, async () => {
  const [service, database] = [await setup.startService(), await setup.createDatabase()];
  service.deliver(3);
  const daemon = setup.daemon(setup.environment(service, database));
  await daemon.catchesUp();
  const rename = async (from: string, to: string) => {
    await database.query(`ALTER SCHEMA ${from} RENAME TO ${to}`);
    await database.query(`ALTER SCHEMA ${from}_reporting RENAME TO ${to}_reporting`);
  };
  await rename('scanfeed', 'kept');
  service.deliver(1);
  const errors = async () => (await daemon.status()).currentErrors.map(({ message }) => message);
  await eventually(errors).toContainEqual(expect.stringContaining('the schema scanfeed does not exist'));
  expect(await database.query("SELECT to_regnamespace('scanfeed') AS schema")).toEqual([{ schema: null }]);
  await rename('kept', 'scanfeed');
  const stored = () => database.query('SELECT count(*)::int AS runs FROM scanfeed.runs');
  await expect.poll(stored, { timeout: 60_000 }).toEqual([{ runs: 4 }]); // it pauses for half a minute at most
});
