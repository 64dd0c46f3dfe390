import { Help } from 'commander';

/** Formats a duration, such as `4.2 s`, `12 min`, `3.5 h`, `8 d`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  if (seconds < 6_000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3_600) return `${(seconds / 3_600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Formats a time, such as `2026-01-31T08:00:00Z`. */
export function formatTime(time: Date | string): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}

/** Formats a count, such as `1 entry`, `2 entries`. */
export function counted(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** Control, format and separator characters and lone surrogates, except tabs and ends of lines. */
const CONTROLS = /(?![\t\n]|\r\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Escapes control characters as JSON does, so that a terminal shows them and does not obey them. Keeps tabs and ends of lines. */
export function escapeControls(data: string | Uint8Array): string {
  const text = typeof data === 'string' ? data : Buffer.from(data).toString();
  return text.replace(CONTROLS, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** Makes text of the service safe for a terminal by replacing control characters. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\ufffd');
}

/** Minimum width of wrapped text, columns. */
const NARROWEST = 20;
const help = Object.assign(new Help(), { minWidthToWrap: NARROWEST });

/**
 * Wraps text at spaces so that it fits into a terminal after `indent` columns, and indents the following lines.
 * @param columns width of the terminal; null to keep one line
 */
export function wrapIndented(text: string, indent: number, columns: number | null): string {
  if (columns === null) return text;
  return help.boxWrap(text, Math.max(NARROWEST, columns - indent)).replaceAll('\n', `\n${' '.repeat(indent)}`);
}
