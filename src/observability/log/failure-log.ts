import type { Clock } from '../../core/clock.js';
import { type CurrentError, classifyError, runbookOf } from '../../core/errors.js';
import { describeError } from './describe-error.js';
import type { Logger } from './logger.js';

/** Intervals between reminders of an outage, milliseconds: doubled from the first up to the last. */
const FIRST_REMINDER_MS = 5 * 60_000;
const LAST_REMINDER_MS = 60 * 60_000;

/** A failure this soon after a recovery continues the same outage, so an unstable service does not fill the log. */
const STABLE_MS = 60_000;

/** Time after which an overdue retry counts as abandoned: the loop hangs, or the stage ended. Longer than any try. Milliseconds. */
const RETRY_OVERDUE_MS = 15 * 60_000;

/** That of PostgreSQL's `integer`. */
const MAX_NUMBER = 2 ** 31;

const FAILED = 'failed, retrying';
const HOLDING = 'holding: action required';
const BUG = 'this is a bug in scanfeed: report it with this line and the lines before it';

interface FailureLogOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Level of failures that need an operator; `error` by default. */
  readonly holdLevel?: 'warn' | 'error';
  /** Called with each change of an outage that is in the log. */
  readonly onOutage?: ((outage: Outage) => void) | undefined;
}

/** The failures of one kind in a row, without a recovery of their stage in between. Times are monotonic milliseconds. */
export interface Outage extends Omit<CurrentError, 'nextTryAt'> {
  /** Random number that identifies the outage in this process. */
  readonly number: number;
  readonly begunAt: number;
  readonly failedAt: number;
  readonly nextTryAt: number;
  /** Null while it continues. */
  readonly endedAt: number | null;
}

/** The outages of a stage until it has worked for a minute, and the state of their log lines. */
interface Entry {
  /** Wall clock of the first failure, ISO 8601. */
  readonly since: string;
  /** Number of all failures. */
  failures: number;
  /** The outages by kind, since kinds may alternate; without failures since the last recovery. */
  readonly outages: Map<string, Outage>;
  /** The outage that continues, or the last one. */
  latest: Outage;
  /** Time of its first failure, or of the first one after a recovery or another kind. */
  resumedAt: number;
  /** Type and kind of the latest error. */
  errorKey: string;
  /** The `errorKey` of the last line; empty if none has been written since the last recovery. */
  lastLoggedKey: string;
  readonly loggedKeys: Set<string>;
  remindAt: number;
  remindAfterMs: number;
}

export type FailureLog<Stage extends string> = ReturnType<typeof createFailureLog<Stage>>;

/**
 * Logs an outage when it begins, once for each type and kind of error, in growing intervals while it lasts, and when it ends. The
 * failures in between are logged at level debug.
 */
export function createFailureLog<Stage extends string>({
  logger,
  clock,
  holdLevel = 'error',
  onOutage = () => {},
}: FailureLogOptions) {
  const entries = new Map<Stage, Entry>();

  const begin = (stage: Stage, kind: string, now: number, number = Math.floor(clock.random() * MAX_NUMBER)): Outage => {
    const since = new Date(clock.now()).toISOString();
    const times = { since, begunAt: now, failedAt: now, nextTryAt: now, endedAt: null };
    return { stage, number, kind, message: '', held: false, runbook: '', failures: 0, ...times };
  };
  const entryOf = (stage: Stage, kind: string, now: number): Entry => {
    const entry = entries.get(stage);
    const endedAt = entry?.latest.endedAt ?? null;
    if (entry !== undefined && (endedAt === null || now - endedAt < STABLE_MS)) {
      return endedAt === null ? entry : Object.assign(entry, { resumedAt: now, lastLoggedKey: '' });
    }
    const latest = begin(stage, kind, now);
    const log = { errorKey: '', lastLoggedKey: '', loggedKeys: new Set<string>(), remindAt: now, remindAfterMs: 0 };
    const outages = new Map([[kind, latest]]);
    const begun = { since: latest.since, failures: 0, outages, latest, resumedAt: now, ...log };
    entries.set(stage, begun);
    return begun;
  };
  const open = () => [...entries.values()].filter(({ latest }) => latest.endedAt === null);
  /** If the database is unavailable, every stage fails in the same way, and only the first one logs it. */
  const isLoggedByAnother = (entry: Entry) =>
    open().some(
      (other) => other !== entry && other.errorKey === entry.errorKey && other.loggedKeys.has(entry.errorKey),
    );
  const notify = ({ latest, loggedKeys }: Entry) => {
    if (loggedKeys.size > 0) onOutage(latest);
  };
  const end = (entry: Entry) => {
    entry.latest = { ...entry.latest, endedAt: clock.monotonic() };
    notify(entry);
  };

  return {
    /** Records a failure. @param pauseMs pause before the retry, milliseconds */
    failed(stage: Stage, error: unknown, pauseMs: number): void {
      const now = clock.monotonic();
      const { kind, action } = classifyError(error);
      const { type, message } = describeError(error);
      const entry = entryOf(stage, kind, now);
      if (entry.latest.endedAt === null && entry.latest.kind !== kind) end(entry);
      const earlier = entry.outages.get(kind);
      const outage = earlier !== undefined && earlier.failures > 0 ? earlier : begin(stage, kind, now, earlier?.number);
      const failures = outage.failures + 1;
      entry.failures += 1;
      const meaning = { message, held: action === 'hold', runbook: runbookOf(error) };
      entry.latest = { ...outage, ...meaning, failures, failedAt: now, nextTryAt: now + pauseMs, endedAt: null };
      entry.outages.set(kind, entry.latest);
      const errorKey = `${type} ${kind}`;
      if (entry.errorKey !== errorKey) Object.assign(entry, { errorKey, resumedAt: now });
      const remedy = kind === 'internal' ? { remedy: BUG } : {};
      const fields = { stage, kind, failures, pauseMs: Math.round(pauseMs), ...remedy, error };
      const level = action === 'hold' ? holdLevel : 'warn';
      if (!entry.loggedKeys.has(entry.errorKey) && !isLoggedByAnother(entry)) {
        logger[level](action === 'hold' ? HOLDING : FAILED, fields);
        noteLine(entry, now, FIRST_REMINDER_MS);
      } else if (isReminderDue(entry, now)) {
        const { since, begunAt } = outage;
        const all = entry.failures > failures ? { failuresSince: entry.since, failuresInAll: entry.failures } : {};
        logger[level]('still failing', { ...fields, since, seconds: seconds(now - begunAt), ...all });
        noteLine(entry, now, Math.min(LAST_REMINDER_MS, 2 * entry.remindAfterMs));
      } else {
        logger.debug('failed again', fields);
      }
      notify(entry);
    },
    /** Ends the outage of a stage, if there is one. */
    recovered(stage: Stage): void {
      const entry = entries.get(stage);
      if (entry === undefined || entry.latest.endedAt !== null) return;
      end(entry);
      // An unstable stage keeps the numbers of its outages, so that they do not displace others in the database.
      for (const [kind, outage] of entry.outages) entry.outages.set(kind, { ...outage, failures: 0 });
      const { kind, failures, begunAt } = entry.latest;
      const fields = { stage, kind, failures, seconds: seconds(clock.monotonic() - begunAt) };
      logger[entry.lastLoggedKey === '' ? 'debug' : 'info']('recovered', fields);
    },
    /** Discards the outage of a stage that another process runs from now on. */
    reset(stage: Stage): void {
      const entry = entries.get(stage);
      entries.delete(stage);
      if (entry?.latest.endedAt === null) end(entry);
    },
    /** Returns the kind of the last error of a stage that fails and is retried, else null. */
    kindOf(stage: Stage): string | null {
      const latest = entries.get(stage)?.latest;
      if (latest === undefined || latest.endedAt !== null) return null;
      return clock.monotonic() - latest.nextTryAt < RETRY_OVERDUE_MS ? latest.kind : null;
    },
    /** Returns the failures that continue, one for each stage; the one that began last is first. */
    current(): readonly CurrentError[] {
      const newestFirst = open().sort((one, other) => other.resumedAt - one.resumedAt);
      return newestFirst.map(({ latest: { stage, kind, message, held, runbook, since, failures, nextTryAt } }) => {
        const at = new Date(clock.now() + nextTryAt - clock.monotonic()).toISOString();
        return { stage, kind, message, held, runbook, since, failures, nextTryAt: at };
      });
    },
  };
}

/**
 * An outage that resumed after a recovery or another kind is logged again once it has lasted as long as a stable recovery, so
 * that the last line names the current failure.
 */
function isReminderDue(entry: Entry, now: number): boolean {
  const { errorKey, lastLoggedKey, loggedKeys, remindAt, resumedAt } = entry;
  const isUnnamed = lastLoggedKey !== errorKey;
  return loggedKeys.has(errorKey) && (now >= remindAt || (isUnnamed && now - resumedAt >= STABLE_MS));
}

function noteLine(entry: Entry, now: number, remindAfterMs: number): void {
  entry.loggedKeys.add(entry.errorKey);
  Object.assign(entry, { lastLoggedKey: entry.errorKey, remindAfterMs, remindAt: now + remindAfterMs });
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
