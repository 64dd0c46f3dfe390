import { troubleOf } from '../outcome/trouble.js';
import type { Clock } from '../sync/ports.js';
import { describeError } from './describe-error.js';
import type { Logger } from './logger.js';
import { BUG, type OutageWords, WORDS } from './outage-words.js';
import type { CurrentTrouble } from './status-report.js';

/** An outage that goes on is told again after this long, then after twice as long, and so on, up to every hour. */
const FIRST_REMINDER_MS = 5 * 60_000;
const LAST_REMINDER_MS = 60 * 60_000;

/** What fails again within this time of its end has not ended: so a service that fails now and then fills no log. */
const LULL_MS = 60_000;

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
 * as it ends; each retry in between at level debug alone. What fails again soon after its end goes on: silently, until it
 * has failed for a minute or worked for one. No timer: that is told along with what else is.
 */
export interface Outages<What extends string> {
  /** @param pauseMs until the next try */
  failed(what: What, error: unknown, pauseMs: number): void;
  recovered(what: What): void;
  /** It is somebody else's to meet from now on. */
  dropped(what: What): void;
  /** Told often: writes the ends that no failure came after. */
  passed(): void;
  current(): readonly CurrentTrouble[];
}

interface Outage {
  readonly number: number;
  readonly since: string;
  /** Monotonic milliseconds. */
  readonly begunAt: number;
  /** When it began, or failed again after its end. */
  resumedAt: number;
  /** Null: it goes on. Else it is kept for a while, for it may go on yet. */
  endedAt: number | null;
  /** Whether a line was written since it was resumed. */
  isSaid: boolean;
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
  const known = new Map<What, Outage>();
  let number = 0;

  const open = () => [...known].filter(([, { endedAt }]) => endedAt === null);

  /** Where one thing is away, all that need it fail alike: the first says so. */
  const isToldByAnother = (outage: Outage) =>
    open().some(([, other]) => other !== outage && other.way === outage.way && other.told.has(outage.way));

  const changed = (what: What, outage: Outage) => {
    if (outage.told.size === 0) return;
    const { number, kind, message, failures, begunAt, failedAt, nextTryAt, endedAt } = outage;
    onChange({ stage: what, number, kind, message, failures, begunAt, failedAt, nextTryAt, endedAt });
  };
  const close = (what: What, outage: Outage) => {
    outage.endedAt = clock.monotonic();
    changed(what, outage);
  };
  const sayOver = (level: 'debug' | 'info', what: What, { kind, failures, begunAt, endedAt }: Outage) => {
    const lasted = seconds((endedAt ?? clock.monotonic()) - begunAt);
    logger[level](words(what).over, { stage: what, kind, failures, seconds: lasted });
  };
  const forget = (what: What, outage: Outage) => {
    known.delete(what);
    if (outage.endedAt !== null && !outage.isSaid) sayOver('info', what, outage);
  };
  const passed = () => {
    const now = clock.monotonic();
    for (const [what, outage] of known) {
      if (outage.endedAt !== null && now - outage.endedAt >= LULL_MS) forget(what, outage);
    }
  };

  return {
    failed(what, error, pauseMs) {
      passed();
      const { kind, remedy } = troubleOf(error);
      const { type, message } = describeError(error);
      const now = clock.monotonic();
      const outage = known.get(what) ?? begun(number + 1, new Date(clock.now()).toISOString(), now);
      number = Math.max(number, outage.number);
      known.set(what, outage);
      if (outage.endedAt !== null) Object.assign(outage, { endedAt: null, resumedAt: now, isSaid: false });
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
      const isDue = now >= outage.remindAt || (!outage.isSaid && now - outage.resumedAt >= LULL_MS);
      if (!outage.told.has(outage.way) && !isToldByAnother(outage)) {
        outage.told.add(outage.way);
        Object.assign(outage, { isSaid: true, ...remindedAfter(FIRST_REMINDER_MS, now) });
        logger[level](remedy === 'hold' ? text.holding : text.passing, shown);
      } else if (outage.told.has(outage.way) && isDue) {
        const againAfterMs = Math.min(LAST_REMINDER_MS, 2 * outage.remindAfterMs);
        Object.assign(outage, { isSaid: true, ...remindedAfter(againAfterMs, now) });
        logger[level](text.still, { ...shown, since: outage.since, seconds: seconds(now - outage.begunAt) });
      } else {
        logger.debug('failed again', shown);
      }
      changed(what, outage);
    },
    recovered(what) {
      passed();
      const outage = known.get(what);
      if (outage === undefined || outage.endedAt !== null) return;
      close(what, outage);
      sayOver(outage.isSaid ? 'info' : 'debug', what, outage);
      if (outage.told.size === 0) known.delete(what);
    },
    dropped(what) {
      const outage = known.get(what);
      if (outage === undefined) return;
      forget(what, outage);
      if (outage.endedAt === null) close(what, outage);
    },
    passed,
    current: () =>
      open().map(([stage, { kind, message, since, failures }]) => ({ stage, kind, message, since, failures })),
  };
}

function begun(number: number, since: string, begunAt: number): Outage {
  const none = { kind: '', message: '', way: '', failedAt: begunAt, nextTryAt: begunAt };
  return {
    number,
    since,
    begunAt,
    resumedAt: begunAt,
    endedAt: null,
    isSaid: false,
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
