import { createPaceMeter } from '../../sync/progress/reading-pace.js';
import type { CommandProcess } from '../context/command-process.js';
import type { CommonOptions } from '../context/common-options.js';
import { formatSeconds, formatTime } from './format.js';

/** Intervals between updates on a terminal and elsewhere, milliseconds. */
const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 10_000;
const BAR_WIDTH = 24;
/** Rate below which a decimal place is shown, things per second. */
const SLOW = 10;

/** How far some work is. */
export interface Figures {
  /** Number of things that are done, such as entries that were read. */
  readonly done: number;
  /** The things with what was done to them, such as `entries read`. */
  readonly what: string;
  /** Number of things to do; missing if unknown. */
  readonly total?: number;
  /** Delivery times, for work on the feed, which does not tell the number of its entries. */
  readonly delivered?: { readonly from: Date | null; readonly upTo: Date | null; readonly until: Date };
  /** Something else to know, at the end of the line. */
  readonly remark?: string | null;
}

export interface Progress {
  /** Shows a state in words or figures, once the last update is old enough, or `atOnce`. Updates it until the next one. */
  show(state: string | Figures, atOnce?: boolean): void;
  /** Writes a permanent line immediately, in place of the drawn one. */
  say(line: string): void;
  /** Removes the drawn line, so that other output can follow. */
  clear(): void;
}

/**
 * Shows the progress of long work on stderr until it ends: one redrawn line on a terminal, otherwise a line every 10 s. The rate and
 * the time left are those of the last minute, also while nothing is reported.
 * @param first shown with the duration until the first report
 */
export async function withProgress<T>(
  { note, noteColumns, clock }: Pick<CommandProcess, 'note' | 'noteColumns' | 'clock'>,
  { quiet, json }: CommonOptions,
  first: string | Figures,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const width = json ? null : noteColumns;
  const everyMs = width === null ? PLAIN_EVERY_MS : TERMINAL_EVERY_MS;
  const begunAt = clock.monotonic();
  const measure = createPaceOfFigures();
  const ended = new AbortController();
  let state = first;
  let shownAt = begunAt;
  let drawn = false;
  const update = (atOnce = false): void => {
    const now = clock.monotonic();
    const pace = measure(now, state);
    if (quiet || (!atOnce && now - shownAt < everyMs)) return;
    shownAt = now;
    const line = json ? toJson(state, pace) : describe(state, pace, state === first ? (now - begunAt) / 1_000 : 0);
    // Redrawing would not remove a line that wraps into a second row.
    note(width === null ? `${line}\n` : `\r${line.slice(0, width - 1)}\x1b[K`);
    drawn = width !== null;
  };
  const updateUntilEnded = async () => {
    for (; !ended.signal.aborted; await clock.sleep(everyMs, ended.signal)) update();
  };
  const clear = (): void => {
    if (drawn) note('\r\x1b[K');
    drawn = false;
  };
  const show = (next: string | Figures, atOnce = false): void => {
    state = next;
    update(atOnce);
  };
  const say = (line: string): void => {
    clear();
    note(`${line}\n`);
  };
  void updateUntilEnded();
  try {
    return await work({ show, say, clear });
  } finally {
    ended.abort();
    clear();
  }
}

/** Measures the pace of the last minute; null for a state in words, and before the first thing is done. Other things have another pace. */
function createPaceOfFigures() {
  let meter = createPaceMeter();
  let begunWith = 0;
  let last: Figures | null = null;
  return (now: number, state: string | Figures) => {
    if (typeof state === 'string') return null;
    if (last?.what !== state.what) [meter, last, begunWith] = [createPaceMeter(), state, state.done];
    const before = last.done;
    last = state;
    const pace = meter.measure(now, state.done - before, partsOf(state).left);
    return state.done === begunWith ? null : pace;
  };
}

/** Returns the done part, from 0 to 1, and the part that is left in any unit, if they are known. Pure. */
function partsOf({ done, total, delivered }: Figures): { readonly share: number | null; readonly left: number | null } {
  if (total !== undefined) {
    return total > 0 && done <= total ? { share: done / total, left: total - done } : { share: null, left: null };
  }
  if (delivered === undefined || delivered.upTo === null) return { share: null, left: null };
  const left = Math.max(0, delivered.until.getTime() - delivered.upTo.getTime());
  const whole = delivered.from === null ? 0 : delivered.until.getTime() - delivered.from.getTime();
  return { share: whole > 0 ? Math.max(0, 1 - left / whole) : null, left };
}

type Pace = ReturnType<ReturnType<typeof createPaceMeter>['measure']>;

/** @param seconds duration of work that has reported nothing yet; 0 if it has */
function describe(state: string | Figures, pace: Pace, seconds: number): string {
  if (typeof state === 'string') return seconds < 2 ? state : `${state}, ${formatSeconds(seconds)} so far`;
  const { share, left } = partsOf(state);
  const count = state.total === undefined ? String(state.done) : `${state.done} of ${state.total}`;
  const parts = [`${count} ${state.what}`];
  if (pace !== null) parts.push(`${pace.entriesPerSecond.toFixed(pace.entriesPerSecond < SLOW ? 1 : 0)}/s`);
  // In the last second, and before there is a pace, nothing is said about a time left that is known in principle.
  if (left === null || pace?.entriesPerSecond === 0) parts.push('time left unknown');
  else if (pace !== null && pace.secondsLeft !== null) parts.push(`${formatSeconds(pace.secondsLeft)} left`);
  if (state.remark) parts.push(state.remark);
  if (state.delivered?.upTo) parts.push(`delivered up to ${formatTime(state.delivered.upTo)}`);
  return `${share === null ? '' : `${bar(share)} `}${parts.join(', ')}`;
}

function bar(share: number): string {
  const done = Math.floor(share * BAR_WIDTH);
  return `[${'#'.repeat(done)}${'-'.repeat(BAR_WIDTH - done)}] ${Math.floor(share * 100)}%`;
}

function toJson(state: string | Figures, pace: Pace): string {
  if (typeof state === 'string') return JSON.stringify({ progress: state });
  const { what, done, total = null, delivered, remark = null } = state;
  const { share, left } = partsOf(state);
  const perSecond = pace?.entriesPerSecond ?? null;
  const secondsLeft = left === null ? null : (pace?.secondsLeft ?? null);
  const deliveredUpTo = delivered?.upTo ?? null;
  return JSON.stringify({ progress: what, done, total, share, perSecond, secondsLeft, deliveredUpTo, remark });
}
