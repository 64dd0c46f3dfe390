import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** Runs `work` on a connection of its own to `url`. */
export async function withConnection<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The URL of another database on the same server. */
export function urlOfDatabase(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Removes the database with whatever is still connected to it. */
export async function dropDatabase(client: pg.Client, name: string): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`);
}

const ANSWER_WITHIN_MS = 60_000;
const RETRY_MS = 50;

/** Returns the server's version (`18.4`) once it answers. Rejects if it refuses the login, or does not answer in time. */
export async function waitForServer(
  url: string,
  { signal, withinMs = ANSWER_WITHIN_MS }: { signal: AbortSignal; withinMs?: number },
): Promise<string> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await readVersion(url);
    } catch (error) {
      const sqlState = String((error as { code?: unknown }).code ?? '');
      // Class 28 is a refused login, 3D a missing database: waiting does not help.
      if (/^(28|3D)/.test(sqlState) || performance.now() > deadline) throw error;
    }
    await sleep(RETRY_MS, undefined, { signal });
  }
}

async function readVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    return rows[0]?.server_version ?? 'unknown';
  } finally {
    await client.end();
  }
}

/** Makes new sessions of the database read-only. Returns the function that makes them writable again. */
export async function makeReadOnly(url: string): Promise<() => Promise<void>> {
  const alter = (change: string) =>
    withConnection(url, async (client) => {
      // The session that undoes it is read-only as well.
      await client.query('SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE');
      const name = pg.escapeIdentifier(new URL(url).pathname.slice(1));
      await client.query(`ALTER DATABASE ${name} ${change}`);
    });
  await alter('SET default_transaction_read_only = on');
  return () => alter('RESET default_transaction_read_only');
}
