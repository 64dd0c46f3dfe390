import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Clock } from '../core/clock.js';
import { type FeedEntry, KEYS, parseEntries } from './feed-entries.js';
import { HIDDEN, type Mistake, SettingsError } from './mistakes.js';
import { fileVariableOf } from './reader.js';
import { type ReadFile, readText, unblocked } from './reread.js';
import { HOME_SCHEMA, readSettings, type SettingsFor, type SettingsOptions } from './settings.js';
import { type Group, VARIABLES } from './variables.js';

/** The feeds that a process follows. */
export interface ListedFeeds<G extends Group = Group> {
  /** The settings of each feed whose entry is valid, in the order of the file. */
  readonly feeds: readonly SettingsFor<G | 'feed'>[];
  readonly invalid: readonly InvalidFeed[];
}

export interface FeedsFile<G extends Group = Group> extends ListedFeeds<G> {
  /** Paths of the API keys of these feeds. An entry may become valid when such a file changes. */
  readonly invalidKeyFiles: readonly string[];
  /** Text of the file, to detect changes. */
  readonly text: string;
}

export interface InvalidFeed {
  readonly name: string;
  readonly mistakes: readonly Mistake[];
}

interface FeedsFileOptions<G extends Group> extends SettingsOptions<G> {
  readonly clock: Clock;
}

/** Maximum size of the file, bytes: three times that of 10,000 usual entries. Parsing takes seconds. */
const MAX_BYTES = 4 * 2 ** 20;

/** Time after which the file must read the same again, milliseconds: a file that is being written lacks its last lines. */
const SETTLE_MS = 1_000;

const API_KEY_FILE = fileVariableOf(VARIABLES.service.apiKey);

/** Returns the path of the feeds file; null if the environment describes the only feed. */
export function feedsFilePath(env: NodeJS.ProcessEnv = process.env): string | null {
  return env[VARIABLES.process.feedsFile.name] || null;
}

/**
 * Reads the settings of the feeds in a file. Each entry overrides variables of the environment, so all rules and defaults are
 * those of the variables.
 * @throws SettingsError with every mistake, if the file cannot be used as a whole or a variable of all feeds is wrong
 */
export async function readFeedsFile<G extends Group = Group>(
  path: string,
  env: NodeJS.ProcessEnv = process.env,
  { need, readFile = readText, onKept, clock }: FeedsFileOptions<G>,
): Promise<FeedsFile<G>> {
  const text = await readSettledText(path, readFile, clock);
  const { entries, problems } = await parseEntries(text, basename(path));
  const inherited = { ...env }; // process.env itself is slow
  const feeds: SettingsFor<G | 'feed'>[] = [];
  const invalid = new Map<string, Mistake[]>();
  const invalidKeyFiles = new Set<string>();
  const common = new Map<string, Mistake>();
  const options = { ...(need && { need: ['feed' as const, ...need] }), readFile, onKept };
  const home = env[VARIABLES.database.schema.name] || VARIABLES.database.schema.default;
  const shared = new Map<string, unknown>([[HOME_SCHEMA.name, home]]);
  for (const entry of markRepeatedNames(entries)) {
    const result = settingsOf(entry, inherited, options, shared);
    for (const mistake of result.common) common.set(`${mistake.variable} ${mistake.reason}`, mistake);
    if (result.settings !== null) {
      feeds.push(result.settings);
      continue;
    }
    invalid.set(entry.name, [...(invalid.get(entry.name) ?? []), ...result.mistakes]);
    const keyFile = entry.variables.get(API_KEY_FILE) ?? env[API_KEY_FILE];
    if (keyFile) invalidKeyFiles.add(keyFile);
  }
  const ofAll = [...problems.map((reason) => unusable(path, reason)), ...common.values()];
  if (ofAll.length > 0) throw new SettingsError([...ofAll, ...[...invalid.values()].flat()]);
  return {
    feeds,
    invalid: [...invalid].map(([name, mistakes]) => ({ name, mistakes })),
    invalidKeyFiles: [...invalidKeyFiles],
    text,
  };
}

/** Reads the text of a feeds file that is not being written. */
async function readSettledText(path: string, readFile: ReadFile, clock: Clock): Promise<string> {
  for (let text = await readFeedsText(path, readFile); ; ) {
    await clock.sleep(SETTLE_MS, new AbortController().signal);
    const again = await readFeedsText(path, readFile);
    if (again === text) return text;
    text = again;
  }
}

/**
 * Reads the text of a feeds file.
 * @throws SettingsError
 */
export async function readFeedsText(path: string, readFile: ReadFile = readText): Promise<string> {
  let text: string;
  try {
    const { size } = await stat(path).catch(() => ({ size: 0 })); // a missing file fails below
    checkSize(path, size);
    text = await unblocked(readFile)(path);
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new SettingsError([unusable(path, `reading it failed (${code})`)]);
  }
  checkSize(path, Buffer.byteLength(text));
  return text;
}

/** Returns a text that changes when the file does, or its permissions. Rejects if it is missing. */
export async function versionOf(path: string): Promise<string> {
  const { ino, ctimeMs, size } = await stat(path);
  return [ino, ctimeMs, size].join();
}

function checkSize(path: string, bytes: number): void {
  if (bytes > MAX_BYTES) throw new SettingsError([unusable(path, `it has ${bytes} bytes, more than 4 MiB`)]);
}

function unusable(path: string, reason: string): Mistake {
  const allowed = 'the path of a list of feeds in YAML or JSON, each with a name';
  return { variable: VARIABLES.process.feedsFile.name, value: path, allowed, reason };
}

/** A repeated name is a mistake of every entry that has it. */
function markRepeatedNames(entries: readonly FeedEntry[]): readonly FeedEntry[] {
  const byName = new Map<string, FeedEntry[]>();
  for (const entry of entries) byName.set(entry.name, [...(byName.get(entry.name) ?? []).slice(0, 1), entry]);
  return entries.map((entry) => {
    const other = byName.get(entry.name)?.find((each) => each !== entry);
    if (other === undefined) return entry;
    const reason = `the feed in line ${other.line} has the same name`;
    const mistake = { variable: entry.where('name'), value: entry.name, allowed: 'another name for each feed', reason };
    return { ...entry, mistakes: [...entry.mistakes, mistake] };
  });
}

interface EntryResult<G extends Group> {
  /** Null if the entry is invalid. */
  readonly settings: SettingsFor<G | 'feed'> | null;
  readonly mistakes: readonly Mistake[];
  /** Mistakes in variables that no entry can override. */
  readonly common: readonly Mistake[];
}

function settingsOf<G extends Group>(
  entry: FeedEntry,
  env: NodeJS.ProcessEnv,
  options: SettingsOptions<G | 'feed'>,
  shared: Map<string, unknown>,
): EntryResult<G> {
  const overridden = { ...env, ...Object.fromEntries(entry.variables) };
  if (entry.variables.has(API_KEY_FILE)) delete overridden[VARIABLES.service.apiKey.name];
  try {
    const settings = readSettings(overridden, options, shared);
    return { settings: entry.mistakes.length > 0 ? null : settings, mistakes: entry.mistakes, common: [] };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const own = error.mistakes.filter(({ variable }) => keyOf(variable) !== undefined);
    const common = error.mistakes.filter(({ variable }) => keyOf(variable) === undefined);
    // A variable without a usable value in the entry was already reported, and would be reported as missing here.
    const located = own.map((mistake) => locate(mistake, entry));
    const reported = new Set(entry.mistakes.map(({ variable }) => variable));
    const added = located.filter(({ variable }) => !reported.has(variable));
    return { settings: null, mistakes: [...entry.mistakes, ...added], common };
  }
}

function keyOf(variable: string): string | undefined {
  return KEYS.get(variable === VARIABLES.service.apiKey.name ? API_KEY_FILE : variable);
}

/** Names the key and the line in place of the variable, unless the value is inherited. */
function locate(mistake: Mistake, entry: FeedEntry): Mistake {
  const key = keyOf(mistake.variable) ?? '';
  const isInherited = !entry.lines.has(key) && mistake.value !== null;
  if (isInherited) return mistake;
  const variable = entry.where(key);
  if (key !== KEYS.get(API_KEY_FILE)) return { ...mistake, variable };
  // Perhaps the key itself was written in place of the path.
  return mistake.value === null
    ? { variable, value: null, allowed: 'the path of a file that contains the key' }
    : { ...mistake, variable, value: HIDDEN };
}
