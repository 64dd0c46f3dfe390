import { troubleOf } from '../outcome/trouble.js';
import type { Clock } from '../sync/ports.js';
import { describeError } from './describe-error.js';
import type { Logger } from './logger.js';
import type { CurrentTrouble } from './status-report.js';

/** An outage that goes on is told again after this long, then after twice as long, and so on, up to every hour. */
const FIRST_REMINDER_MS = 5 * 60_000;
const LAST_REMINDER_MS = 60 * 60_000;

/** For what only a change of the program mends. */
const BUG = 'this is a bug in scanfeed: please report this line, with those before it';

/** The messages of an outage. */
export interface OutageWords {
  /** Its beginning, by what will come of it. */
  readonly passing: string;
  readonly holding: string;
  readonly still: string;
  readonly over: string;
}

const WORDS: OutageWords = {
  passing: 'failed, and will be tried again',
  holding: 'holding: this will not pass by itself',
  still: 'still failing',
  over: 'works again',
};

export interface OutagesOptions<What extends string> {
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly words?: (what: What) => OutageWords;
  /** How what will not pass by itself is written; `error` by default. */
  readonly holdingLevel?: 'warn' | 'error';
  /** Told of each change of an outage that is in the log. */
  readonly onChange?: (outage: ToldOutage) => void;
}

/** An outage that is in the log. Times are monotonic milliseconds. */
export interface ToldOutage {
  readonly stage: string;
  /** Counts the outages. */
  readonly number: number;
  readonly kind: string;
  readonly message: string;
  readonly failures: number;
  readonly begunAt: number;
  readonly failedAt: number;
  readonly nextTryAt: number;
  /** Null: it goes on. */
  readonly endedAt: number | null;
}

/**
 * What fails at the moment, told in the log as it begins, as it fails in another way, now and then while it goes on, and
 * as it ends; each retry in between at level debug alone.
 */
export interface Outages<What extends string> {
  /** @param pauseMs until the next try */
  failed(what: What, error: unknown, pauseMs: number): void;
  recovered(what: What): void;
  /** It is somebody else's to meet from now on. */
  dropped(what: What): void;
  current(): readonly CurrentTrouble[];
}

interface Outage {
  readonly number: number;
  readonly since: string;
  /** Monotonic milliseconds. */
  readonly begunAt: number;
  failures: number;
  /** How it fails at present, and every way of failing that was told. */
  way: string;
  readonly told: Set<string>;
  kind: string;
  message: string;
  failedAt: number;
  nextTryAt: number;
  remindAt: number;
  remindAfterMs: number;
}

export function createOutages<What extends string>({
  logger,
  clock,
  words = () => WORDS,
  holdingLevel = 'error',
  onChange = () => {},
}: OutagesOptions<What>): Outages<What> {
  const open = new Map<What, Outage>();
  let number = 0;

  /** Where one thing is away, all that need it fail alike: the first says so. */
  const isToldByAnother = (outage: Outage) =>
    [...open.values()].some((other) => other !== outage && other.way === outage.way && other.told.has(outage.way));

  const changed = (what: What, outage: Outage, endedAt: number | null) => {
    if (outage.told.size === 0) return;
    const { number, kind, message, failures, begunAt, failedAt, nextTryAt } = outage;
    onChange({ stage: what, number, kind, message, failures, begunAt, failedAt, nextTryAt, endedAt });
  };
  const close = (what: What): Outage | undefined => {
    const outage = open.get(what);
    open.delete(what);
    if (outage !== undefined) changed(what, outage, clock.monotonic());
    return outage;
  };

  return {
    failed(what, error, pauseMs) {
      const { kind, remedy } = troubleOf(error);
      const { type, message } = describeError(error);
      const now = clock.monotonic();
      const outage = open.get(what) ?? begun(number + 1, new Date(clock.now()).toISOString(), now);
      number = Math.max(number, outage.number);
      open.set(what, outage);
      Object.assign(outage, { kind, message, way: `${type} ${kind}`, failures: outage.failures + 1 });
      Object.assign(outage, { failedAt: now, nextTryAt: now + pauseMs });
      const { failures } = outage;
      const shown = {
        stage: what,
        kind,
        failures,
        pauseMs: Math.round(pauseMs),
        ...(kind === 'internal' && { remedy: BUG }),
        error,
      };
      const level = remedy === 'hold' ? holdingLevel : 'warn';
      const text = words(what);
      if (!outage.told.has(outage.way) && !isToldByAnother(outage)) {
        outage.told.add(outage.way);
        Object.assign(outage, remindedAfter(FIRST_REMINDER_MS, now));
        logger[level](remedy === 'hold' ? text.holding : text.passing, shown);
      } else if (outage.told.has(outage.way) && now >= outage.remindAt) {
        Object.assign(outage, remindedAfter(Math.min(LAST_REMINDER_MS, 2 * outage.remindAfterMs), now));
        logger[level](text.still, { ...shown, since: outage.since, seconds: seconds(now - outage.begunAt) });
      } else {
        logger.debug('failed again', shown);
      }
      changed(what, outage, null);
    },
    recovered(what) {
      const outage = close(what);
      if (outage === undefined) return;
      const { kind, failures, begunAt, told } = outage;
      const fields = { stage: what, kind, failures, seconds: seconds(clock.monotonic() - begunAt) };
      logger[told.size > 0 ? 'info' : 'debug'](words(what).over, fields);
    },
    dropped: (what) => void close(what),
    current: () =>
      [...open].map(([stage, { kind, message, since, failures }]) => ({ stage, kind, message, since, failures })),
  };
}

function begun(number: number, since: string, begunAt: number): Outage {
  const none = { kind: '', message: '', way: '', failedAt: begunAt, nextTryAt: begunAt };
  return {
    number,
    since,
    begunAt,
    failures: 0,
    told: new Set(),
    ...none,
    ...remindedAfter(FIRST_REMINDER_MS, begunAt),
  };
}

function remindedAfter(remindAfterMs: number, now: number): Pick<Outage, 'remindAt' | 'remindAfterMs'> {
  return { remindAfterMs, remindAt: now + remindAfterMs };
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
