import type { ParsedNode, YAMLMap } from 'yaml';
import { FILTER_NAMES, UNFILTERED } from '../core/feed-filters.js';
import { HIDDEN, type Mistake } from './mistakes.js';
import { fileVariableOf } from './reader.js';
import { ALL_VARIABLES, VARIABLES } from './variables.js';

const { service: SERVICE, feed: FEED, database: DATABASE } = VARIABLES;

/** The keys of an entry by the variables that they override. */
export const KEYS: ReadonlyMap<string, string> = new Map([
  [FEED.name.name, 'name'],
  [SERVICE.baseUrl.name, 'baseUrl'],
  [fileVariableOf(SERVICE.apiKey), 'apiKeyFile'],
  ...FILTER_NAMES.map((name) => [FEED[name].name, `filters.${name}`] as const),
  [FEED.start.name, 'start'],
  [FEED.markdown.name, 'markdown'],
  [FEED.pollIntervalMs.name, 'pollInterval'],
  [DATABASE.schema.name, 'schema'],
  [DATABASE.readerRole.name, 'readerRole'],
]);
const MAX_FEEDS = 10_000;
const LIST_KEYS = FILTER_NAMES.filter((name) => Array.isArray(UNFILTERED[name])).map((name) => `filters.${name}`);
const KEY_LIST = [...KEYS.values()].join(', ');
const VARIABLE_OF: ReadonlyMap<string, string> = new Map([...KEYS].map(([variable, key]) => [key, variable]));

export interface FeedEntry {
  readonly name: string;
  readonly line: number;
  /** Texts of the variables that it overrides. */
  readonly variables: ReadonlyMap<string, string>;
  /** Line of each key. */
  readonly lines: ReadonlyMap<string, number>;
  readonly mistakes: readonly Mistake[];
  /** Returns the location of a key, for messages; the entry's first line for a key that it does not have. */
  readonly where: (key: string) => string;
}

interface Entries {
  readonly entries: readonly FeedEntry[];
  /** Reasons why the file cannot be used as a whole. */
  readonly problems: readonly string[];
}

/** A value as text, or the reason why it is not usable. */
interface GivenText {
  readonly text: string | null;
  readonly reason: string;
}

/** A key with its value. */
interface Given extends GivenText {
  readonly key: string;
  readonly line: number;
}

/** The YAML library, which is loaded only if there is a feeds file, and the line numbers of the current text. */
interface Parser {
  readonly yaml: typeof import('yaml');
  readonly lineOf: (node: { readonly range: readonly [number, ...unknown[]] }) => number;
}

/**
 * Parses the list of feeds. JSON is YAML, too.
 * @param file name of the file, for messages
 */
export async function parseEntries(text: string, file: string): Promise<Entries> {
  const yaml = await import('yaml');
  const counter = new yaml.LineCounter();
  const parser: Parser = { yaml, lineOf: ({ range: [offset] }) => counter.linePos(offset).line };
  // Repeated keys are mistakes of one feed, not of the file. Tags have no meaning: some would make another collection of the list.
  const tags = { schema: 'core', resolveKnownTags: false } as const;
  const options = { lineCounter: counter, prettyErrors: false, uniqueKeys: false, ...tags };
  const { contents, errors } = yaml.parseDocument(text, options);
  const [error] = errors;
  if (error !== undefined) {
    const message = error.message.replace(/: .*/s, ''); // without what it quotes from the file: perhaps a key
    return { entries: [], problems: [`line ${counter.linePos(error.pos[0]).line} is not valid YAML: ${message}`] };
  }
  if (!yaml.isSeq<ParsedNode>(contents)) return { entries: [], problems: ['it is not a list'] };
  const count = contents.items.length;
  if (count > MAX_FEEDS) return { entries: [], problems: [`it lists ${count} feeds, more than ${MAX_FEEDS}`] };
  return entriesOf(contents.items, file, parser);
}

function entriesOf(items: readonly ParsedNode[], file: string, parser: Parser): Entries {
  const entries: FeedEntry[] = [];
  const problems: string[] = [];
  for (const item of items) {
    const line = parser.lineOf(item);
    const given = parser.yaml.isMap(item) ? pairsOf(item, '', parser) : [];
    const name = given.find(({ key }) => key === 'name')?.text ?? '';
    if (FEED.name.schema.safeParse(name).success) entries.push(entryOf(name, line, given, file));
    else problems.push(`the entry in line ${line} has no valid name (${FEED.name.allowed})`);
  }
  return { entries, problems };
}

function pairsOf(map: YAMLMap.Parsed, prefix: '' | 'filters.', parser: Parser): readonly Given[] {
  const { yaml, lineOf } = parser;
  const names = new Set<string>();
  return map.items.flatMap(({ key: node, value }) => {
    const key = prefix + nameOf(node, parser);
    const line = lineOf(node);
    if (names.has(key)) return [{ key, line, text: null, reason: 'it is set twice' }];
    names.add(key);
    if (key !== 'filters') return [{ key, line, ...textOf(value, key, parser) }];
    if (yaml.isMap(value)) return pairsOf(value as YAMLMap.Parsed, 'filters.', parser);
    return isEmpty(value, parser) ? [] : [{ key, line, text: null, reason: 'it is not a map' }];
  });
}

function nameOf(key: ParsedNode, { yaml }: Parser): string {
  // Drops a value that follows the colon without a space and so became part of the key: it may be a secret.
  const [written = ''] = yaml.isScalar(key) ? String(key.source).split(':') : [];
  return /^[A-Za-z]{1,40}$/.test(written) ? written : JSON.stringify(written.slice(0, 40));
}

/** Reads a scalar as it is written; null is an empty text. */
function textOf(value: ParsedNode | null, key: string, parser: Parser): GivenText {
  const { yaml } = parser;
  if (isEmpty(value, parser)) return { text: '', reason: '' };
  if (yaml.isScalar(value)) return { text: String(value.source), reason: '' };
  if (yaml.isAlias(value)) return { text: null, reason: 'it is an alias, which is not supported' };
  if (!LIST_KEYS.includes(key) || !yaml.isSeq<ParsedNode>(value)) return { text: null, reason: 'it is not one value' };
  const texts = value.items.map((item) => (yaml.isScalar(item) ? String(item.source) : ''));
  const isList = texts.length > 0 && texts.every((text) => text !== '');
  return isList ? { text: texts.join(','), reason: '' } : { text: null, reason: 'it is not a list of values' };
}

function isEmpty(value: ParsedNode | null, { yaml }: Parser): boolean {
  return value === null || (yaml.isScalar(value) && value.value === null);
}

function entryOf(name: string, line: number, given: readonly Given[], file: string): FeedEntry {
  const lines = new Map<string, number>();
  const variables = new Map<string, string>();
  const mistakes: Mistake[] = [];
  const placeOf = (key: string, at: number) => `${file} line ${at}, feed ${name}, ${key}`;
  for (const { key, line: at, text, reason } of given) {
    const variable = VARIABLE_OF.get(key);
    const why = variable === undefined && key !== 'filters' ? 'a feed has no such key' : reason;
    if (variable !== undefined && text !== null) variables.set(variable, text);
    else mistakes.push({ variable: placeOf(key, at), value: HIDDEN, allowed: allowedFor(variable), reason: why });
    if (!lines.has(key)) lines.set(key, at);
  }
  return { name, line, variables, lines, mistakes, where: (key) => placeOf(key, lines.get(key) ?? line) };
}

function allowedFor(variable: string | undefined): string {
  if (variable === undefined) return KEY_LIST;
  return ALL_VARIABLES.find(({ name }) => name === variable)?.allowed ?? 'a file path';
}
