import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { beforeAll, inject } from 'vitest';
import { dropDatabase, urlOfDatabase, withConnection } from './maintenance.js';

/** A database of a test's own, on the server the run shares. */
export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  drop(): Promise<void>;
}

/** What a database begins with. Files that name the same `key` share the work: it is done once a run. */
export interface Preparation {
  /** Lower-case letters, digits and underscores. */
  readonly key: string;
  /** Fills an empty database. It must have closed its connections when it resolves. */
  prepare(url: string): Promise<void>;
}

// Neither the server's usual zone nor a whole number of hours: code that ignores the zone gets another day.
const timeZone = 'Asia/Kathmandu';

/** The locale of the databases, as in CREATE DATABASE; empty: that of the server. */
const LOCALE = process.env.TEST_DATABASE_LOCALE ?? '';

/** Creates a database, empty or as the preparation left it. Only an empty one may have another locale than the others. */
export async function createTestDatabase(preparation?: Preparation, locale = LOCALE): Promise<TestDatabase> {
  const { url: serverUrl, prefix } = testServer();
  const name = prefix + randomBytes(5).toString('hex');
  await withConnection(serverUrl, async (client) => {
    const template =
      preparation === undefined ? 'template0' : await prepareTemplate(client, serverUrl, prefix, preparation);
    await createDatabase(client, name, template, locale);
  });
  const drop = () => withConnection(serverUrl, (client) => dropDatabase(client, name));
  return { url: urlOfDatabase(serverUrl, name), name, drop };
}

/**
 * A database for the tests of one file or one `describe`. It exists until the run ends, since dropping one takes as long as
 * creating it.
 *
 * @example
 * const database = useDatabase();
 * test('…', async () => { const pool = new pg.Pool({ connectionString: database.url }); … });
 */
export function useDatabase(preparation?: Preparation): Omit<TestDatabase, 'drop'> {
  let database: TestDatabase | null = null;
  const created = () => {
    if (database === null) throw new Error('The database exists only within tests and hooks');
    return database;
  };
  beforeAll(async () => {
    database = await createTestDatabase(preparation);
  });
  return {
    get url() {
      return created().url;
    },
    get name() {
      return created().name;
    },
  };
}

function testServer() {
  const server = inject('testServer');
  if (server === undefined) throw new Error('These tests have no PostgreSQL: see the projects in vitest.config.ts');
  return server;
}

async function createDatabase(client: pg.Client, name: string, template: string, locale = LOCALE): Promise<void> {
  const quoted = pg.escapeIdentifier(name);
  // Some servers make databases of another encoding unless asked.
  await client.query(`CREATE DATABASE ${quoted} TEMPLATE ${pg.escapeIdentifier(template)} ENCODING 'UTF8' ${locale}`);
  await client.query(`ALTER DATABASE ${quoted} SET timezone = '${timeZone}'`);
}

/** Makes the template unless another worker has; the lock lets only one do so. */
async function prepareTemplate(
  client: pg.Client,
  serverUrl: string,
  prefix: string,
  { key, prepare }: Preparation,
): Promise<string> {
  const name = `${prefix}template_${key}`;
  await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [name]);
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) {
      const draft = `${name}_draft`;
      await dropDatabase(client, draft);
      await createDatabase(client, draft, 'template0');
      await prepare(urlOfDatabase(serverUrl, draft));
      await client.query(`ALTER DATABASE ${pg.escapeIdentifier(draft)} RENAME TO ${pg.escapeIdentifier(name)}`);
    }
  } finally {
    await client.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [name]);
  }
  return name;
}
