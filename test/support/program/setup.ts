import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import {
  type Emulator,
  type EmulatorOptions,
  type RequestRecord,
  type RunSpec,
  startEmulator,
} from '../../../src/emulator/index.js';
import { canary, findExposed } from '../canaries/canary.js';
import { type Watch, watchEmulator } from '../openapi/watch-emulator.js';
import { createTestDatabase } from '../postgres/index.js';
import { withConnection } from '../postgres/maintenance.js';
import { Daemon } from './daemon.js';
import { imageEnvironment, imageOptions } from './image-options.js';
import { Program } from './program.js';

/** A database that is owned by the daemon's role. */
export interface DaemonDatabase {
  readonly name: string;
  /** Includes the role's password. */
  readonly url: string;
  readonly role: string;
  query<R extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<R[]>;
  /** Opens a separate connection, which is closed after the test. */
  connect(): Promise<pg.Client>;
}

/** The emulated service with its own key. Its runs contain the canary of documents. */
export interface ServiceDouble extends Emulator {
  /** Received requests, in order. */
  readonly asked: readonly RequestRecord[];
  /** Adds runs at the end of the feed. Returns their scan ids. */
  deliver(count: number, spec?: RunSpec): string[];
}

export interface ProgramSetup {
  readonly secrets: { readonly apiKey: string; readonly password: string; readonly document: string };
  startService(options?: Partial<EmulatorOptions>): Promise<ServiceDouble>;
  createDatabase(): Promise<DaemonDatabase>;
  /** Returns the environment of a daemon with short intervals for this service and database. */
  environment(service: Pick<Emulator, 'url'>, database: { readonly url: string }): Record<string, string>;
  /** Starts the daemon with this environment. */
  daemon(env: Readonly<Record<string, string>>): Daemon;
  /** Starts the daemon like the image in a container of 256 MiB. */
  daemonInImage(env: Readonly<Record<string, string>>): Daemon;
  /** Starts any command. */
  program(args: readonly string[], env?: Readonly<Record<string, string>>): Program;
  /** Adds secrets of this test, which no program may show. */
  hide(values: Readonly<Record<string, string>>): void;
  /** Registers a cleanup that runs after the test; the last one runs first. */
  afterwards(undo: () => unknown): void;
}

/**
 * Sets up tests of the program as a process. After each test it stops everything, and checks that no output or page of a
 * process contains a secret or a stack trace, and that all requests to the service match its description.
 */
export function useProgram(): ProgramSetup {
  const secrets = { apiKey: canary('key'), password: canary('password'), document: canary('document') };
  const role = `scanfeed_daemon_${randomBytes(5).toString('hex')}`;
  const programs: Program[] = [];
  const cursors = new Set<string>();
  const undos: (() => unknown)[] = [];
  const watches: Watch[] = [];
  let hidden: Record<string, string> = {};
  const server = () => inject('testServer').url;
  const started = <P extends Program>(program: P): P => {
    programs.push(program);
    return program;
  };
  const asAdministrator = (sql: string) => withConnection(server(), (client) => client.query(sql));

  beforeAll(async () => {
    await asAdministrator(`CREATE ROLE ${role} LOGIN PASSWORD ${pg.escapeLiteral(secrets.password)}`);
    await asAdministrator(`GRANT ${role} TO CURRENT_USER`);
  });
  afterAll(() => asAdministrator(`DROP ROLE ${role}`));
  afterEach(async () => {
    const ended = programs.splice(0);
    for (const program of ended) if (program instanceof Daemon && program.running) await fetchPages(program);
    for (const program of ended) if (program.running) await program.stop('SIGKILL');
    for (const undo of undos.splice(0).reverse()) await undo();
    expect(watches.splice(0).flatMap(({ differences }) => differences)).toEqual([]);
    for (const program of ended) expectNothingExposed(program, { ...secrets, ...hidden, ...numbered(cursors) });
    hidden = {};
  });

  return {
    secrets,
    startService: async (options = {}) => {
      const apiKeys = [{ key: secrets.apiKey, organization: 'demo' }];
      const emulator = await startEmulator({
        apiKeys,
        ...options,
        switches: { truncatedShare: 0, ...options.switches },
      });
      undos.push(() => emulator.close());
      watches.push(watchEmulator(emulator, { strict: true }));
      return serviceDouble(emulator, secrets.document, cursors);
    },
    createDatabase: async () => {
      const { name, url, drop } = await createTestDatabase();
      undos.push(drop);
      await asAdministrator(`ALTER DATABASE ${name} OWNER TO ${role}`);
      const own = new URL(url);
      own.username = role;
      own.password = secrets.password;
      const connect = async () => {
        const client = new pg.Client({ connectionString: own.href });
        client.on('error', () => {});
        await client.connect();
        undos.push(() => client.end());
        return client;
      };
      let connected: Promise<pg.Client> | undefined;
      return {
        name,
        url: own.href,
        role,
        connect,
        query: async (sql, values = []) => {
          connected ??= connect();
          return (await (await connected).query(sql, [...values])).rows;
        },
      };
    },
    environment: ({ url }, database) => ({
      SCANFEED_BASE_URL: url,
      SCANFEED_API_KEY: secrets.apiKey,
      DATABASE_URL: database.url,
      SCANFEED_READER_ROLE: role, // an existing one, because roles belong to the whole server
      SCANFEED_TYPED_VIEWS: 'off', // their creation would be logged at an unpredictable time
      SCANFEED_ADMIN_HOST: '127.0.0.1',
      SCANFEED_ADMIN_PORT: '0',
      SCANFEED_POLL_INTERVAL: '50ms',
      SCANFEED_LEASE_TTL: '1s',
      SCANFEED_RECONCILE_INTERVAL: 'off',
      SCANFEED_RECONCILE_FULL_INTERVAL: 'off',
    }),
    daemon: (env) => started(new Daemon(env)),
    daemonInImage: (env) => started(new Daemon({ ...imageEnvironment(), ...env }, imageOptions())),
    program: (args, env = {}) => started(new Program(args, env)),
    hide: (values) => {
      hidden = { ...hidden, ...values };
    },
    afterwards: (undo) => {
      undos.push(undo);
    },
  };
}

function serviceDouble(emulator: Emulator, document: string, cursors: Set<string>): ServiceDouble {
  const asked: RequestRecord[] = [];
  emulator.requests.observe((record) => {
    asked.push(record);
    if (record.nextCursor) cursors.add(record.nextCursor);
  });
  const content: RunSpec = { fileName: `${document}.pdf`, partnerName: document, data: { text: document } };
  return Object.assign(emulator, {
    asked,
    deliver: (count: number, spec: RunSpec = {}) =>
      emulator.appendCount(count, { ...content, ...spec }).map(({ scanId }) => scanId),
  });
}

/** Fetches all pages of the daemon in the state at the end of the test. */
async function fetchPages(daemon: Daemon): Promise<void> {
  if (daemon.logged('admin server is listening').length === 0) return;
  for (const path of ['/metrics', '/status.json', '/', '/livez', '/readyz']) await daemon.get(path).catch(() => {});
}

function expectNothingExposed(program: Program, secrets: Readonly<Record<string, string>>): void {
  const pages = program instanceof Daemon ? program.served : [];
  const shown = [program.stdout, program.stderr, ...pages].join('\n');
  expect(findExposed(shown, secrets)).toEqual([]);
  expect(shown).not.toMatch(/^\s+at .*:\d+:\d+/m);
  // The level `trace` includes stack traces.
  if (program.env.SCANFEED_LOG_LEVEL !== 'trace') expect(program.stdout).not.toContain('"stack"');
}

function numbered(values: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries([...values].map((value, index) => [`cursor ${index}`, value]));
}
