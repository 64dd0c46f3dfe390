import type { FeedFilters } from '../core/feed-filters.js';
import { isLoopback } from '../core/loopback.js';
import { type DatabaseConnection, readConnection } from './connection.js';
import { readExtraCertificates } from './extra-certificates.js';
import { HIDDEN, SettingsError } from './mistakes.js';
import { fileVariableOf, Reader, secretOf } from './reader.js';
import { type KeptValue, type ReadFile, readText } from './reread.js';
import { readSystemd } from './systemd.js';
import { readTraces } from './traces.js';
import { unknownNames } from './unknown-names.js';
import { GROUPS, type Group, VARIABLES, type Variable } from './variables.js';

export { type Mistake, SettingsError } from './mistakes.js';
export type { Retention } from './retention.js';

/**
 * All settings by group, checked and frozen. Durations are in milliseconds; null means off. Secrets are functions, so that no
 * log shows them.
 */
export type Settings = { readonly [G in Group]: Readonly<ReturnType<(typeof READERS)[G]>> };
export type ServiceSettings = Settings['service'];
export type FeedSettings = Settings['feed'];
export type DatabaseSettings = Settings['database'];

export type SettingsFor<G extends Group> = Pick<Settings, G> & { readonly warnings: readonly string[] };

const READERS = {
  service: readService,
  feed: readFeed,
  database: readDatabase,
  reconcile: (reader: Reader) => ({
    intervalMs: reader.value(VARIABLES.reconcileInterval),
    windowMs: reader.value(VARIABLES.reconcileWindow),
    fullIntervalMs: reader.value(VARIABLES.reconcileFullInterval),
  }),
  admin: (reader: Reader) => ({ host: reader.value(VARIABLES.adminHost), port: reader.value(VARIABLES.adminPort) }),
  process: (reader: Reader) => ({
    shutdownTimeoutMs: reader.value(VARIABLES.shutdownTimeout),
    logLevel: reader.value(VARIABLES.logLevel),
    /** Null: no traces are exported. The exporter itself reads the address, which may contain a password. */
    traces: reader.value(VARIABLES.collectorUrl) === null ? null : readTraces(reader.env),
    systemd: readSystemd(reader.env),
  }),
} as const satisfies Record<Group, (reader: Reader) => object>;

export interface SettingsOptions<G extends Group> {
  /** The groups that a command needs, by default all; the others are neither required nor checked. */
  readonly need?: readonly G[];
  readonly readFile?: ReadFile;
  /** Called when a file that is read again is unusable, so that its last valid value is kept. */
  readonly onKept?: ((kept: KeptValue) => void) | undefined;
}

/**
 * Reads the settings from the environment. No other code reads it.
 * @param shared values shared by the feeds of a file: see {@link Reader.once}
 * @throws SettingsError with every mistake
 */
export function readSettings<G extends Group = Group>(
  env: NodeJS.ProcessEnv = process.env,
  { need, readFile = readText, onKept }: SettingsOptions<G> = {},
  shared?: Map<string, unknown>,
): SettingsFor<G> {
  const reader = new Reader(env, readFile, shared, onKept);
  const groups: readonly Group[] = need ?? GROUPS;
  const settings = Object.fromEntries(groups.map((group) => [group, READERS[group](reader)]));
  if (reader.mistakes.length > 0) throw new SettingsError(reader.mistakes);
  const warnings = [...reader.warnings, ...unknownNames(env)];
  return freeze({ ...settings, warnings } as unknown as SettingsFor<G>);
}

/** Returns the environment, with defaults for variables that are not set. */
export function environmentWith(
  defaults: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const unset = Object.entries(defaults).filter(([name]) => !isSet([name], env));
  return { ...env, ...Object.fromEntries(unset) };
}

/** Returns whether one of these variables is set, or the file of one. */
export function isSet(names: readonly string[], env: NodeJS.ProcessEnv = process.env): boolean {
  return names.some((name) => Boolean(env[name] || env[fileVariableOf({ name })]));
}

function readService(reader: Reader) {
  const url = reader.value(VARIABLES.baseUrl);
  requireEncryption(url, reader);
  const readApiKey = reader.secret(VARIABLES.apiKey);
  const httpsProxy = reader.once(VARIABLES.httpsProxy, () => {
    const lower = lowerCaseValue(reader, VARIABLES.httpsProxy);
    return lower === null ? reader.secret(VARIABLES.httpsProxy) : secretOf(lower, async () => lower);
  });
  const noProxy = lowerCaseValue(reader, VARIABLES.noProxy) ?? reader.value(VARIABLES.noProxy) ?? undefined;
  const readCa = reader.once(VARIABLES.extraCaCerts, () => readExtraCertificates(reader));
  return {
    /** With the version prefix, without a trailing slash. */
    baseUrl: url?.href.replace(/\/$/, '') ?? '',
    /** Called for every request, so that a changed file takes effect. */
    readApiKey: readApiKey?.current ?? (async () => HIDDEN), // never used: a missing key is a mistake
    /** Path of the file that contains the key, if it is read from one. */
    apiKeyFile: reader.env[fileVariableOf(VARIABLES.apiKey)] || null,
    requestTimeoutMs: reader.value(VARIABLES.requestTimeout),
    requestsPerSecond: reader.value(VARIABLES.requestsPerSecond),
    /** How to connect: functions, since the URL of a proxy may contain a password. */
    readRoute: secretOf({ proxy: { httpsProxy: httpsProxy?.(), noProxy }, ca: undefined }, async () => ({
      proxy: { httpsProxy: await httpsProxy?.current(), noProxy },
      ca: await readCa(),
    })),
  };
}

/** Reports a mistake if the key would cross a network unencrypted. */
function requireEncryption(url: URL | null, reader: Reader): void {
  const allowHttp = reader.value(VARIABLES.allowHttp);
  if (url?.protocol !== 'http:' || isLoopback(url) || allowHttp !== false) return;
  const reason = 'http: would send the key unencrypted; SCANFEED_ALLOW_HTTP=true allows it';
  reader.addMistake(VARIABLES.baseUrl.name, url.href, VARIABLES.baseUrl.allowed, reason);
}

/** Returns the value of the lower-case name, which takes precedence by convention; null if it is not set. */
function lowerCaseValue(reader: Reader, variable: Variable<string | null>): string | null {
  const name = variable.name.toLowerCase();
  const given = reader.env[name];
  return given ? reader.parse(variable, given, name) : null;
}

function readFeed(reader: Reader) {
  return {
    name: reader.value(VARIABLES.feed),
    filters: {
      environment: reader.value(VARIABLES.environment),
      status: reader.value(VARIABLES.status),
      documentType: reader.value(VARIABLES.documentType),
    } satisfies FeedFilters,
    markdown: reader.value(VARIABLES.markdown),
    start: reader.value(VARIABLES.start),
    pageLimit: reader.value(VARIABLES.pageLimit),
    pollIntervalMs: reader.value(VARIABLES.pollInterval),
    resolveConcurrency: reader.value(VARIABLES.resolveConcurrency),
    pendingRetryMs: reader.value(VARIABLES.pendingRetryInterval),
    memoryBudgetBytes: reader.value(VARIABLES.memoryBudget),
    leaseTtlMs: reader.value(VARIABLES.leaseTtl),
    keepHistory: reader.value(VARIABLES.history),
  };
}

/** Names the schema of the processes among the values that all feeds of a file share. */
export const HOME_SCHEMA = { name: 'home schema' };

function readDatabase(reader: Reader) {
  // Preparing TLS takes a millisecond, which is long for a thousand feeds.
  const connectionOf = (variable: typeof VARIABLES.databaseUrl) =>
    reader.once(variable, () => readConnection(variable, reader));
  const connection = connectionOf(VARIABLES.databaseUrl);
  const separate = isSet([VARIABLES.migrationUrl.name], reader.env);
  const migration = separate ? connectionOf(VARIABLES.migrationUrl) : connection;
  const schema = reader.value(VARIABLES.schema);
  return {
    // Null only if a mistake was reported.
    connection: connection as DatabaseConnection,
    /** The direct connection for migrations; `connection` if none is set. */
    migrationConnection: migration as DatabaseConnection,
    schema,
    /** Schema of the processes: SCANFEED_DATABASE_SCHEMA, also for feeds with a schema of their own. */
    homeSchema: reader.once(HOME_SCHEMA, () => schema),
    readerRole: reader.value(VARIABLES.readerRole),
    typedViews: reader.value(VARIABLES.typedViews) === 'auto',
    reportingTimeZone: reader.value(VARIABLES.reportingTimeZone),
    retention: reader.value(VARIABLES.retention),
    autoMigrate: reader.value(VARIABLES.autoMigrate),
    poolSize: reader.value(VARIABLES.poolSize),
  };
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || value instanceof Date || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
