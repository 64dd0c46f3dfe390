import { MAX_COUNTED } from '../../core/counts.js';

/** Escapes text for an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Renders a time for people, with the exact time as an attribute. */
export function timeElement(iso: string): string {
  return `<time datetime="${escapeHtml(iso)}">${escapeHtml(utcTime(iso))}</time>`;
}

/** Formats a time, such as `2026-11-21 15:48:21 UTC`. */
function utcTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/**
 * Formats a duration in its two largest units, such as `3.2 s`, `14 min 5 s`, `3 h 20 min`, `26 d 4 h`, or `14 min` for 14 min 0 s.
 */
export function describeSeconds(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return both(whole, 60, 'min', 1, 's');
  return whole < 48 * 3_600 ? both(whole, 3_600, 'h', 60, 'min') : both(whole, 86_400, 'd', 3_600, 'h');
}

function both(seconds: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeUnit}${rest === 0 ? '' : ` ${rest} ${smallUnit}`}`;
}

/**
 * Formats a number, such as `1,204`, without `Intl`: its first use loads locales for tens of milliseconds.
 * @param number whole, or below 1,000 with at most two decimals
 */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Formats a figure of the status, which is counted up to a maximum. */
export function upToMax(number: number): string {
  return number < MAX_COUNTED ? grouped(number) : `${grouped(number)} or more`;
}

/** Formats a count, such as `1 entry`, `1,204 entries`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : many}`;
}
