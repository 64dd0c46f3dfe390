import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Emulator } from '../../../../src/emulator/index.js';
import { Fleet } from '../support/fleet.js';

/** A feed under test. Each has a schema of its own, so that none stores what another one loses. */
export interface FeedUnderTest {
  readonly name: string;
  readonly schema: string;
  readonly replicas: number;
  /** How far back its recent and full passes read, in milliseconds; Infinity: they read everything. */
  readonly windowMs: number;
  /** Recent passes run at short intervals. */
  readonly runsRecentPasses: boolean;
  readonly fleet: Fleet;
  /** Command that requests a pass while daemons are running. */
  readonly request: readonly string[];
  /** Runs a command of scanfeed on this feed. Resolves with its exit code. */
  readonly run: (args: readonly string[], signal: AbortSignal) => Promise<number>;
}

const WINDOW_MS = 600_000;

/** What the feeds differ in: each finds late runs in one way only, so that no other way hides a loss. */
const KINDS = [
  {
    name: 'history',
    replicas: 2,
    windowMs: 0,
    request: ['backfill', '--beginning'],
    env: { SCANFEED_PAGE_LIMIT: '20', SCANFEED_RECONCILE_INTERVAL: 'off', SCANFEED_RECONCILE_FULL_INTERVAL: 'off' },
  },
  {
    name: 'live',
    replicas: 1,
    windowMs: WINDOW_MS,
    // Cancels the recent pass that is running. It begins earlier than the window that is checked.
    request: ['reconcile', '--since', `${(2 * WINDOW_MS) / 1000}s`],
    env: {
      SCANFEED_START: 'live',
      SCANFEED_PAGE_LIMIT: '25',
      SCANFEED_RECONCILE_INTERVAL: '1s',
      SCANFEED_RECONCILE_WINDOW: `${WINDOW_MS / 1000}s`,
      SCANFEED_RECONCILE_FULL_INTERVAL: 'off',
    },
  },
  {
    name: 'full',
    replicas: 1,
    windowMs: Number.POSITIVE_INFINITY,
    request: ['reconcile', '--full'],
    env: {
      SCANFEED_PAGE_LIMIT: '200',
      SCANFEED_RECONCILE_INTERVAL: 'off',
      SCANFEED_RECONCILE_FULL_INTERVAL: '1m',
    },
  },
] as const;

/**
 * @param program the compiled bin
 * @param suffix keeps the schemas of two phases apart
 */
export function makeFeeds(program: string, emulator: Emulator, databaseUrl: string, suffix: string): FeedUnderTest[] {
  return KINDS.map(({ env: ownEnv, ...kind }) => {
    const schema = `${kind.name}_${suffix}`;
    const env = {
      SCANFEED_BASE_URL: emulator.url,
      SCANFEED_API_KEY: emulator.apiKey,
      SCANFEED_ENVIRONMENT: 'all',
      DATABASE_URL: databaseUrl,
      SCANFEED_DATABASE_SCHEMA: schema,
      // Two schemas that create one role at the same time would disturb each other.
      SCANFEED_READER_ROLE: `reader_${schema}`,
      SCANFEED_TYPED_VIEWS: 'off',
      SCANFEED_POLL_INTERVAL: '50ms',
      SCANFEED_LEASE_TTL: '2s',
      SCANFEED_PENDING_RETRY_INTERVAL: '1s',
      SCANFEED_ADMIN_HOST: '127.0.0.1',
      SCANFEED_ADMIN_PORT: '0',
      ...ownEnv,
    };
    const run = async (args: readonly string[], signal: AbortSignal) => {
      const { PATH = '', HOME = '' } = process.env;
      const options = { env: { PATH, HOME, ...env }, signal };
      return promisify(execFile)(process.execPath, [program, ...args], options).then(
        () => 0,
        (error: { code?: unknown }) => (typeof error.code === 'number' ? error.code : -1),
      );
    };
    const runsRecentPasses = env.SCANFEED_RECONCILE_INTERVAL !== 'off';
    return { ...kind, schema, runsRecentPasses, run, fleet: new Fleet(program, env) };
  });
}
