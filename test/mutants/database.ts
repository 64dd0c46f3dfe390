import type { TestProject } from 'vitest/node';
import { startTestServer } from '../support/postgres/server.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server that the tests of all mutants share. */
    databaseUrl: string;
  }
}

/** One server for all mutants: starting it takes longer than most of them live. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer(process.env);
  project.provide('databaseUrl', server.url);
  return async () => {
    await server.stop?.();
  };
}
