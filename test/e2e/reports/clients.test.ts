import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { grantReader } from '../../../src/storage/reporting/reader-role.js';
import { requireTool, runTool } from '../../support/deployment/tools.js';
import { useDatabase } from '../../support/postgres/index.js';
import { connectionOf, MIGRATED, useStore } from '../../support/store.js';
import {
  type Cell,
  expectSameRows,
  type Relation,
  readRelations,
  storeWorstDocuments,
  ZONES,
} from '../../support/worst-documents.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
/** Roles are shared by the whole server. */
const READER = `scanfeed_clients_reader_${process.pid}`;
const LOGIN = `scanfeed_clients_${process.pid}`;
let relations: readonly Relation[] = [];

beforeAll(async () => {
  await storeWorstDocuments(setup);
  expect(await grantReader(setup.connection, READER)).toBe(true);
  // JDBC refuses the few iterations with which the server of the tests hashes passwords. PostgreSQL 15 cannot choose.
  await setup.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT set_config(name, '4096', true) FROM pg_settings WHERE name = 'scram_iterations'`.execute(tx);
    await sql`CREATE ROLE ${sql.id(LOGIN)} LOGIN PASSWORD 'secret' IN ROLE ${sql.id(READER)}`.execute(tx);
    await sql`GRANT SELECT ON public.called_functions TO ${sql.id(READER)}`.execute(tx);
  });
  relations = await readRelations(setup);
});
afterAll(async () => {
  for (const role of [LOGIN, READER]) {
    await setup.rows(sql`DROP OWNED BY ${sql.id(role)}`);
    await setup.rows(sql`DROP ROLE ${sql.id(role)}`);
  }
});

const address = () => {
  const { host, port, database } = connectionOf(given.url);
  return `${host}:${port}/${database}`;
};
const program = (name: string) => join(import.meta.dirname, name);

/** Runs a program that prints each row of the relations in each zone, and compares the rows with those of the server. */
async function expectToReadAll(tool: string, ...args: readonly string[]): Promise<void> {
  const given = relations.map(({ name, columns }) => `${name}|${columns.map(({ kind }) => kind).join(',')}`);
  const { stdout, stderr } = await runTool(tool, [...args, ZONES.join(','), ...given]);
  expect(stderr).toBe('');
  const read = new Map<string, Cell[][]>();
  for (const line of stdout.trimEnd().split('\n')) {
    const [zone, name, ...cells] = JSON.parse(line) as [string, string, ...Cell[]];
    const key = `${name} in ${zone}`;
    read.set(key, [...(read.get(key) ?? []), cells]);
  }
  expect(relations.length).toBeGreaterThan(10);
  for (const relation of relations) {
    for (const zone of ZONES) expectSameRows(relation, read.get(`${relation.name} in ${zone}`) ?? [], `in ${zone}`);
  }
}

describe('a client that reads every view and function, over the worst documents, in every time zone', () => {
  it.for(['psycopg2', 'psycopg', 'psycopg, binary', 'pandas'])(
    'gets the right values when it is %s',
    async (client, context) => {
      requireTool(context, 'report-python');
      await expectToReadAll(
        'report-python',
        program('read-all.py'),
        client,
        `postgresql://${LOGIN}:secret@${address()}`,
      );
    },
  );

  it.for(['text', 'binary'])('gets the right values when it is JDBC, with values in %s', async (format, context) => {
    requireTool(context, 'report-java');
    // By default the driver changes to the binary format with the fifth execution of a statement.
    const threshold = format === 'binary' ? -1 : 0;
    const url = `jdbc:postgresql://${address()}?user=${LOGIN}&password=secret&prepareThreshold=${threshold}`;
    await expectToReadAll('report-java', program('ReadAll.java'), url);
  });
});
