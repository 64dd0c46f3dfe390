/** What precedes a call of the program on a command line, if it is not the first word. */
const BEFORE_CALL = /^(?:…|npx|sudo|--|&&|\||;|[A-Z_]+=.*)$/;
/** What ends the words of a call. */
const AFTER_CALL = /^(?:&&|\|{1,2}|;|#|\d?>{1,2}|<|\\)$/;
const IMAGE = /\/scanfeed:[\w.-]+$/;

/** Returns the code of a Markdown page: its code spans, and the lines of its blocks. */
export function codeOf(page: string): readonly string[] {
  const blocks = [...page.matchAll(/^```[^\n]*\n(.*?)^```$/gms)].map(([, block = '']) => block);
  return [...spansOf(page), ...blocks.flatMap((block) => block.split('\n'))];
}

/** Returns the code spans of a page, those that continue in the next line in one. */
export function spansOf(page: string): readonly string[] {
  const prose = page.replaceAll(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span.replaceAll(/\s+/g, ' '));
}

/** Returns the command lines of a page: its code spans, and in its blocks the lines after `$ ` with their continuations. */
export function commandLinesOf(page: string): readonly string[] {
  const joined = page.replaceAll(/\\\n\s*/g, ' ');
  return [...spansOf(page), ...[...joined.matchAll(/^\$ (.*)$/gm)].map(([, line = '']) => line)];
}

/**
 * Returns the calls of the program that a page shows, without the program's name. A row of a table that begins with a call
 * names options of it.
 */
export function programCallsOf(page: string): readonly string[] {
  const rows = [...page.matchAll(/^\| \[?`scanfeed ([^`]+)`(?:\]\([^)]*\))? \|(.*)$/gm)].map(
    ([, call = '', rest = '']) => `${call} ${[...rest.matchAll(/`(--[a-z-]+)/g)].map(([, flag]) => flag).join(' ')}`,
  );
  return [...commandLinesOf(page).flatMap(callsIn), ...rows.map((call) => call.trim())];
}

function callsIn(line: string): readonly string[] {
  const words = line.replaceAll('node dist/main.js', 'scanfeed').split(/\s+/);
  return words.flatMap((_, at) => {
    if (!isCall(words, at)) return [];
    const rest = words.slice(at + 1);
    const end = rest.findIndex((word) => AFTER_CALL.test(word));
    const call = rest.slice(0, end < 0 ? undefined : end).join(' ');
    return call === '' ? [] : [call];
  });
}

/** Whether the word is the program where a command is expected, or its image in `docker run`. */
function isCall(words: readonly string[], at: number): boolean {
  const [word = '', before] = [words[at], words[at - 1]];
  if (IMAGE.test(word)) return words[1] === 'run';
  if (/\/\.?bin\/scanfeed$/.test(word)) return true;
  return word === 'scanfeed' && (before === undefined || BEFORE_CALL.test(before) || words[at - 2] === 'exec');
}

/** Returns the scripts of package.json that a page runs. */
export function npmScriptsOf(page: string): readonly string[] {
  const runs = codeOf(page).flatMap((code) => [
    ...code.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(test|start)\b)/g),
  ]);
  return runs.map(([, script, short = '']) => script ?? short);
}

/** Returns the words in the code of a page that the pattern matches as a whole. */
export function wordsOf(page: string, pattern: RegExp): readonly string[] {
  const whole = new RegExp(`^(?:${pattern.source})$`, pattern.flags);
  return codeOf(page)
    .flatMap((code) => code.split(/[\s"'(){}=,;]+/))
    .filter((word) => whole.test(word));
}
