import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { dropDatabase, withConnection } from './maintenance.js';
import { startTestServer, type TestServer } from './server.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server all test files share, and the prefix of this run's databases on it. */
    testServer: { readonly url: string; readonly prefix: string };
  }
}

/** Starts the server for the files that need one, once a run. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer(process.env);
  const prefix = `scanfeed_test_${randomBytes(4).toString('hex')}_`;
  project.provide('testServer', { url: server.url, prefix });
  console.log(`tests use ${server.description}`);
  return () => (server.stop === null ? dropLeftovers(server, prefix) : server.stop());
}

async function dropLeftovers({ url }: TestServer, prefix: string): Promise<void> {
  await withConnection(url, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      'SELECT datname FROM pg_database WHERE starts_with(datname, $1)',
      [prefix],
    );
    for (const { datname } of rows) await dropDatabase(client, datname);
  });
}
