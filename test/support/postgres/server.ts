import { CommandFailure } from '../../../src/cli/context/exit.js';
import { waitForServer } from './maintenance.js';
import { startTemporaryPostgres } from './temporary-server.js';

/** A PostgreSQL on which the tests may create databases. */
export interface TestServer {
  readonly url: string;
  /** For the line that says what the tests ran on. */
  readonly description: string;
  /** Null if the tests did not start the server, which keeps running. */
  readonly stop: (() => Promise<void>) | null;
}

const image = 'postgres:18-alpine';

/**
 * `TEST_DATABASE_URL` if set; else a container, where an engine responds; else the bundled PostgreSQL.
 * `TEST_DATABASE` (`testcontainers`, `embedded`) insists on one of the latter two; `TEST_POSTGRES_FROM` is a folder with
 * another version of the bundled one in its `node_modules`.
 */
export async function startTestServer(env: NodeJS.ProcessEnv): Promise<TestServer> {
  const { TEST_DATABASE_URL: url, TEST_DATABASE: way } = env;
  if (way === 'testcontainers') return startContainer();
  if (way === 'embedded') return startEmbedded(env.TEST_POSTGRES_FROM);
  if (way) throw new Error(`TEST_DATABASE is "${way}"; it may be testcontainers or embedded`);
  if (url) return useServer(url);
  if (!(await containerEngineAnswers())) return startEmbedded();
  return startContainer().catch((error: unknown) => {
    console.warn(`No container of ${image} (${String(error)}), so the tests use the bundled PostgreSQL`);
    return startEmbedded();
  });
}

async function useServer(url: string): Promise<TestServer> {
  const version = await waitForServer(url, { signal: AbortSignal.timeout(10_000), withinMs: 5000 }).catch((cause) => {
    throw new Error(`The server of TEST_DATABASE_URL does not answer: ${String(cause)}`, { cause });
  });
  return { url, description: `PostgreSQL ${version} of TEST_DATABASE_URL`, stop: null };
}

async function startEmbedded(binariesFrom?: string): Promise<TestServer> {
  const server = await startTemporaryPostgres({ binariesFrom }).catch((error: unknown) => {
    // The message says it all; vitest would print a stack below it.
    if (error instanceof CommandFailure) delete error.stack;
    throw error;
  });
  return { url: server.url, description: `PostgreSQL ${server.version}, embedded`, stop: server.stop };
}

async function containerEngineAnswers(): Promise<boolean> {
  const { getContainerRuntimeClient } = await import('testcontainers');
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

async function startContainer(): Promise<TestServer> {
  const [{ PostgreSqlContainer }, { Wait }] = await Promise.all([
    import('@testcontainers/postgresql'),
    import('testcontainers'),
  ]);
  const quick = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'max_connections=200'];
  const container = await new PostgreSqlContainer(image)
    .withCommand(['postgres', ...quick.flatMap((setting) => ['-c', setting])])
    // Not every engine runs health checks. The port opens once the image's set-up is done.
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  try {
    const url = container.getConnectionUri();
    const version = await waitForServer(url, { signal: AbortSignal.timeout(120_000) });
    return {
      url,
      description: `PostgreSQL ${version}, container ${image}`,
      stop: async () => void (await container.stop()),
    };
  } catch (error) {
    await container.stop();
    throw error;
  }
}
