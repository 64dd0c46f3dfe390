/** Fields that are the same in every line, or shown separately. */
const OMITTED: ReadonlySet<string> = new Set(['level', 'time', 'name', 'version', 'message', 'error', 'stack']);
/** The feed is shown only if it has another name. */
const DEFAULT_FEED = 'default';

const COLOURS: Readonly<Record<string, string>> = {
  trace: '\x1b[2m',
  debug: '\x1b[2m',
  info: '\x1b[32m',
  warn: '\x1b[33m',
  error: '\x1b[31m',
  fatal: '\x1b[31;1m',
};
const DIM = '\x1b[2m';
const RESET = '\x1b[0m';

interface Described {
  readonly message?: unknown;
  readonly cause?: Described;
  readonly stack?: unknown;
}

/**
 * Formats a log line for a terminal: time, level, message and fields, and the stack, if any, below them. Control characters
 * and line breaks are escaped. Pure.
 * @param json a line of the JSON log, with secrets already redacted
 */
export function prettyLine(json: string, { colours }: { readonly colours: boolean }): string {
  const line = JSON.parse(json) as Record<string, unknown>;
  const paint = (colour: string | undefined, text: string) =>
    colours && colour !== undefined ? `${colour}${text}${RESET}` : text;
  const level = String(line.level);
  const error = line.error as Described | undefined;
  const time = String(line.time).replace('T', ' ');
  const head = [paint(DIM, time), paint(COLOURS[level], level.toUpperCase().padEnd(5)), escaped(String(line.message))];
  const fields = Object.entries(line)
    .filter(([name, value]) => !OMITTED.has(name) && !(name === 'feed' && value === DEFAULT_FEED))
    .flatMap(([name, value]) => flattened(name, value));
  const shown = [...fields, ...causes(error)].map(
    ([name, value]) => `${paint(DIM, `${escaped(name)}=`)}${text(value)}`,
  );
  return `${[...head, ...shown].join(' ')}\n${stackOf(error)}`;
}

type Field = readonly [name: string, value: unknown];

/** Flattens nested fields: their names are joined with dots. */
function flattened(name: string, value: unknown): readonly Field[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value]];
  return Object.entries(value).flatMap(([inner, part]) => flattened(`${name}.${inner}`, part));
}

/** Returns the message of an error and of its cause. */
function causes(error: Described | undefined): readonly Field[] {
  if (error === undefined) return [];
  const { cause } = error;
  return [['error', error.message], ...(cause === undefined ? [] : ([['cause', cause.message]] as const))];
}

function stackOf(error: Described | undefined): string {
  if (typeof error?.stack !== 'string') return '';
  return error.stack
    .split('\n')
    .map((frame) => `${escaped(frame)}\n`)
    .join('');
}

function text(value: unknown): string {
  if (typeof value === 'string' && /^[\p{L}\p{N}_.:/+@%-]+$/u.test(value)) return value;
  return escaped(JSON.stringify(value) ?? '');
}

/** Escapes control and format characters, some of which JSON leaves unescaped. */
function escaped(given: string): string {
  return given.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) =>
    [...Array(character.length).keys()].map((at) => unit(character.charCodeAt(at))).join(''),
  );
}

function unit(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
