import { isLoopback } from '../core/loopback.js';
import { type DatabaseConnection, readConnection } from './connection.js';
import { STORE_VARIABLES, URL_VARIABLES } from './database-variables.js';
import { readExtraCertificates } from './extra-certificates.js';
import { HIDDEN, SettingsError } from './mistakes.js';
import { fileVariableOf, Reader, secretOf } from './reader.js';
import { type KeptValue, type ReadFile, readText } from './reread.js';
import { readSystemd } from './systemd.js';
import { readTraces } from './traces.js';
import { unknownNames } from './unknown-names.js';
import { FEED_VARIABLES, FILTER_VARIABLES, GROUPS, type Group, VARIABLES, type Variable } from './variables.js';

export { type Mistake, SettingsError } from './mistakes.js';
export type { Retention } from './retention.js';

/**
 * All settings by group, checked. Durations are in milliseconds; null means off. Secrets are functions, so that no
 * log shows them.
 */
export type Settings = { readonly [G in Group]: Readonly<ReturnType<(typeof READERS)[G]>> };
export type ServiceSettings = Settings['service'];
export type FeedSettings = Settings['feed'];
export type DatabaseSettings = Settings['database'];

export type SettingsFor<G extends Group> = Pick<Settings, G> & { readonly warnings: readonly string[] };

const { service: SERVICE, process: PROCESS } = VARIABLES;

const READERS = {
  service: readService,
  feed: (reader: Reader) => ({ filters: reader.values(FILTER_VARIABLES), ...reader.values(FEED_VARIABLES) }),
  database: readDatabase,
  reconcile: (reader: Reader) => reader.values(VARIABLES.reconcile),
  admin: (reader: Reader) => reader.values(VARIABLES.admin),
  process: (reader: Reader) => ({
    shutdownTimeoutMs: reader.value(PROCESS.shutdownTimeoutMs),
    logLevel: reader.value(PROCESS.logLevel),
    /** Null: no traces are exported. The exporter itself reads the address, which may contain a password. */
    traces: reader.value(PROCESS.collectorUrl) === null ? null : readTraces(reader.env),
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
  return { ...settings, warnings } as unknown as SettingsFor<G>;
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
  const url = reader.value(SERVICE.baseUrl);
  requireEncryption(url, reader);
  const readApiKey = reader.secret(SERVICE.apiKey);
  const httpsProxy = reader.once(SERVICE.httpsProxy, () => {
    const lower = lowerCaseValue(reader, SERVICE.httpsProxy);
    return lower === null ? reader.secret(SERVICE.httpsProxy) : secretOf(lower, async () => lower);
  });
  const noProxy = lowerCaseValue(reader, SERVICE.noProxy) ?? reader.value(SERVICE.noProxy) ?? undefined;
  const readCa = reader.once(SERVICE.extraCaCerts, () => readExtraCertificates(reader));
  return {
    /** With the version prefix, without a trailing slash. */
    baseUrl: url?.href.replace(/\/$/, '') ?? '',
    /** Called for every request, so that a changed file takes effect. */
    readApiKey: readApiKey?.current ?? (async () => HIDDEN), // never used: a missing key is a mistake
    /** Path of the file that contains the key, if it is read from one. */
    apiKeyFile: reader.env[fileVariableOf(SERVICE.apiKey)] || null,
    requestTimeoutMs: reader.value(SERVICE.requestTimeoutMs),
    requestsPerSecond: reader.value(SERVICE.requestsPerSecond),
    /** How to connect: functions, since the URL of a proxy may contain a password. */
    readRoute: secretOf({ proxy: { httpsProxy: httpsProxy?.(), noProxy }, ca: undefined }, async () => ({
      proxy: { httpsProxy: await httpsProxy?.current(), noProxy },
      ca: await readCa(),
    })),
  };
}

/** Reports a mistake if the key would cross a network unencrypted. */
function requireEncryption(url: URL | null, reader: Reader): void {
  const allowHttp = reader.value(SERVICE.allowHttp);
  if (url?.protocol !== 'http:' || isLoopback(url) || allowHttp !== false) return;
  const reason = 'http: would send the key unencrypted; SCANFEED_ALLOW_HTTP=true allows it';
  reader.addMistake(SERVICE.baseUrl.name, url.href, SERVICE.baseUrl.allowed, reason);
}

/** Returns the value of the lower-case name, which takes precedence by convention; null if it is not set. */
function lowerCaseValue(reader: Reader, variable: Variable<string | null>): string | null {
  const name = variable.name.toLowerCase();
  const given = reader.env[name];
  return given ? reader.parse(variable, given, name) : null;
}

/** Names the schema of the processes among the values that all feeds of a file share. */
export const HOME_SCHEMA = { name: 'home schema' };

function readDatabase(reader: Reader) {
  // Preparing TLS takes a millisecond, which is long for a thousand feeds.
  const connectionOf = (variable: typeof URL_VARIABLES.databaseUrl) =>
    reader.once(variable, () => readConnection(variable, reader));
  const connection = connectionOf(URL_VARIABLES.databaseUrl);
  const separate = isSet([URL_VARIABLES.migrationUrl.name], reader.env);
  const migration = separate ? connectionOf(URL_VARIABLES.migrationUrl) : connection;
  const { typedViews, ...store } = reader.values(STORE_VARIABLES);
  return {
    // Null only if a mistake was reported.
    connection: connection as DatabaseConnection,
    /** The direct connection for migrations; `connection` if none is set. */
    migrationConnection: migration as DatabaseConnection,
    ...store,
    typedViews: typedViews === 'auto',
    /** Schema of the processes: SCANFEED_DATABASE_SCHEMA, also for feeds with a schema of their own. */
    homeSchema: reader.once(HOME_SCHEMA, () => store.schema),
  };
}
