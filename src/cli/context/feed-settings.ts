import { type FeedsFile, feedsFilePath, readFeedsFile } from '../../settings/feeds-file.js';
import {
  type DatabaseSettings,
  type FeedSettings,
  type Mistake,
  readSettings,
  SettingsError,
  type SettingsFor,
} from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import type { CommandProcess } from './command-process.js';
import { CommandFailure, EXIT } from './exit.js';

const LISTED_NAMES = 10;

interface Wanted<G extends Group> {
  readonly feed?: string | undefined;
  readonly need: readonly G[];
  /** Whether the command also has `--all`. */
  readonly orAll?: boolean;
}

/**
 * Reads the settings of one feed: those of the environment or, if there is a feeds file, those of the named or only entry.
 * @throws CommandFailure if the file does not list the feed, or several and none is named
 */
export async function readFeedSettings<G extends Group>(
  { env, clock }: CommandProcess,
  { feed: named, need, orAll = false }: Wanted<G>,
): Promise<SettingsFor<G>> {
  const path = feedsFilePath(env);
  if (path === null) {
    const settings = readSettings(env, { need });
    if (named === undefined) return settings;
    if (!('feed' in settings)) throw requiresFile('--feed');
    return { ...settings, feed: { ...(settings.feed as FeedSettings), name: named } };
  }
  const file = await readFeedsFile(path, env, { need, clock });
  const name = named ?? onlyName(file, orAll);
  const mistakes = file.invalid.find((each) => each.name === name)?.mistakes;
  if (mistakes !== undefined) throw new SettingsError(mistakes);
  const found = file.feeds.find(({ feed }) => feed.name === name);
  if (found !== undefined) return found;
  throw new CommandFailure(
    `the feeds file does not list the feed ${JSON.stringify(name)}, only ${listNames(file)}; for a feed that it no longer lists, unset SCANFEED_FEEDS_FILE and set the variables of that feed`,
  );
}

/** Returns the failure of an option that chooses from the feeds file. */
export function requiresFile(option: string): CommandFailure {
  return new CommandFailure(`${option} requires SCANFEED_FEEDS_FILE`, EXIT.usage);
}

function onlyName(file: FeedsFile<never>, orAll: boolean): string {
  const [name, ...others] = namesIn(file);
  if (name === undefined) throw new CommandFailure('the feeds file lists no feed');
  if (others.length === 0) return name;
  const options = orAll ? 'one with --feed, or --all' : 'one with --feed';
  throw new CommandFailure(`the feeds file lists ${listNames(file)}; choose ${options}`, EXIT.usage);
}

function namesIn({ feeds, invalid }: FeedsFile<never>): readonly string[] {
  return [...feeds.map(({ feed }) => feed.name), ...invalid.map(({ name }) => name)];
}

function listNames(file: FeedsFile<never>): string {
  const names = namesIn(file);
  const more = names.length > LISTED_NAMES ? ` and ${names.length - LISTED_NAMES} more` : '';
  return `${names.slice(0, LISTED_NAMES).join(', ')}${more}`;
}

/**
 * Reads the settings of a schema: with a feeds file, that of the named feed, or the only one of all feeds.
 * @throws CommandFailure if the feeds have several schemas and none is named
 */
export async function readSchemaSettings(io: CommandProcess, feed?: string): Promise<DatabaseSettings> {
  if (feed !== undefined) return (await readFeedSettings(io, { feed, need: ['database'] })).database;
  const { schemas, mistakes } = await readSchemas(io);
  if (mistakes.length > 0) throw new SettingsError(mistakes); // one of these feeds may have another schema
  const [settings, ...others] = schemas;
  if (settings === undefined) throw new CommandFailure('the feeds file lists no feed');
  if (others.length === 0) return settings;
  throw new CommandFailure('the feeds have different schemas: --feed chooses the schema of a feed', EXIT.usage);
}

/** Returns the settings of schemas and, if no feed has it, of the schema of the processes, whose reports nobody needs. */
export function withHome(schemas: readonly DatabaseSettings[]): readonly DatabaseSettings[] {
  const [first] = schemas;
  if (first === undefined || schemas.some(({ schema, homeSchema }) => schema === homeSchema)) return schemas;
  return [{ ...first, schema: first.homeSchema, readerRole: null }, ...schemas];
}

export interface Schemas {
  readonly schemas: readonly DatabaseSettings[];
  /** The mistakes in invalid entries, whose schemas are missing. */
  readonly mistakes: readonly Mistake[];
}

/** Reads the settings of the schema or, with a feeds file, of each schema that its feeds have. */
export async function readSchemas({ env, clock }: CommandProcess): Promise<Schemas> {
  const path = feedsFilePath(env);
  if (path === null) return { schemas: [readSettings(env, { need: ['database'] }).database], mistakes: [] };
  const { feeds, invalid } = await readFeedsFile(path, env, { need: ['database'], clock });
  const bySchema = new Map(feeds.map(({ database }) => [database.schema, database]));
  return { schemas: [...bySchema.values()], mistakes: invalid.flatMap(({ mistakes }) => mistakes) };
}
