import type { Clock } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import type { CurrentTrouble } from '../status-page/status-report.js';
import { describeError } from './describe-error.js';
import type { Logger } from './logger.js';

/** An outage that goes on is told again after this long, then after twice as long, and so on, up to every hour. */
const FIRST_REMINDER_MS = 5 * 60_000;
const LAST_REMINDER_MS = 60 * 60_000;

/** What fails again within this time of its end has not ended: so a service that fails now and then fills no log. */
const LULL_MS = 60_000;

/** For what only a change of the program mends. */
const BUG = 'this is a bug in scanfeed: please report this line, with those before it';

/** The messages of an outage: its beginning, by what will come of it, and its reminders. */
const WORDS = {
  passing: 'failed, and will be tried again',
  holding: 'holding: this will not pass by itself',
  still: 'still failing',
};

interface OutagesOptions<What extends string> {
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly words?: (what: What) => typeof WORDS;
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

interface Outage {
  /** What is passed on of it. After its end it is kept for a while, for it may go on yet. */
  facts: ToldOutage;
  readonly since: string;
  /** When it began, or failed again after its end. */
  resumedAt: number;
  /** Whether a line was written since it was resumed. */
  isSaid: boolean;
  /** How it fails at present, and every way of failing that was told. */
  way: string;
  readonly told: Set<string>;
  remindAt: number;
  remindAfterMs: number;
}

export type Outages<What extends string> = ReturnType<typeof createOutages<What>>;

/**
 * What fails at the moment, told in the log as it begins, as it fails in another way, now and then while it goes on, and
 * as it ends; each retry in between at level debug alone. What fails again soon after its end goes on: silently, until it
 * has failed for a minute or worked for one. No timer: that is told along with what else is.
 */
export function createOutages<What extends string>({
  logger,
  clock,
  words = () => WORDS,
  holdingLevel = 'error',
  onChange = () => {},
}: OutagesOptions<What>) {
  const known = new Map<What, Outage>();
  let number = 0;

  const begin = (stage: What, begunAt: number): Outage => {
    number += 1;
    const times = { begunAt, failedAt: begunAt, nextTryAt: begunAt, endedAt: null };
    const outage: Outage = {
      facts: { stage, number, kind: '', message: '', failures: 0, ...times },
      since: new Date(clock.now()).toISOString(),
      resumedAt: begunAt,
      isSaid: false,
      way: '',
      told: new Set(),
      ...remindedAfter(FIRST_REMINDER_MS, begunAt),
    };
    known.set(stage, outage);
    return outage;
  };
  const open = () => [...known.values()].filter(({ facts }) => facts.endedAt === null);

  /** Where one thing is away, all that need it fail alike: the first says so. */
  const isToldByAnother = (outage: Outage) =>
    open().some((other) => other !== outage && other.way === outage.way && other.told.has(outage.way));

  const changed = ({ facts, told }: Outage) => {
    if (told.size > 0) onChange(facts);
  };
  const close = (outage: Outage) => {
    outage.facts = { ...outage.facts, endedAt: clock.monotonic() };
    changed(outage);
  };
  const sayOver = (level: 'debug' | 'info', { facts }: Outage) => {
    const { stage, kind, failures, begunAt, endedAt } = facts;
    logger[level]('works again', { stage, kind, failures, seconds: seconds((endedAt ?? clock.monotonic()) - begunAt) });
  };
  const forget = (what: What, outage: Outage) => {
    known.delete(what);
    if (outage.facts.endedAt !== null && !outage.isSaid) sayOver('info', outage);
  };
  /** Called often: logs the ends that no failure came after. */
  const passed = () => {
    const now = clock.monotonic();
    for (const [what, outage] of known) {
      const { endedAt } = outage.facts;
      if (endedAt !== null && now - endedAt >= LULL_MS) forget(what, outage);
    }
  };

  return {
    /** @param pauseMs until the next try */
    failed(what: What, error: unknown, pauseMs: number): void {
      passed();
      const { kind, action } = classifyError(error);
      const { type, message } = describeError(error);
      const now = clock.monotonic();
      const outage = known.get(what) ?? begin(what, now);
      if (outage.facts.endedAt !== null) Object.assign(outage, { resumedAt: now, isSaid: false });
      const failures = outage.facts.failures + 1;
      const times = { failedAt: now, nextTryAt: now + pauseMs, endedAt: null };
      outage.facts = { ...outage.facts, kind, message, failures, ...times };
      outage.way = `${type} ${kind}`;
      const shown = {
        stage: what,
        kind,
        failures,
        pauseMs: Math.round(pauseMs),
        ...(kind === 'internal' && { remedy: BUG }),
        error,
      };
      const level = action === 'hold' ? holdingLevel : 'warn';
      const text = words(what);
      const isTold = outage.told.has(outage.way);
      const isDue = now >= outage.remindAt || (!outage.isSaid && now - outage.resumedAt >= LULL_MS);
      if (!isTold && !isToldByAnother(outage)) {
        outage.told.add(outage.way);
        Object.assign(outage, { isSaid: true, ...remindedAfter(FIRST_REMINDER_MS, now) });
        logger[level](action === 'hold' ? text.holding : text.passing, shown);
      } else if (isTold && isDue) {
        const againAfterMs = Math.min(LAST_REMINDER_MS, 2 * outage.remindAfterMs);
        Object.assign(outage, { isSaid: true, ...remindedAfter(againAfterMs, now) });
        logger[level](text.still, { ...shown, since: outage.since, seconds: seconds(now - outage.facts.begunAt) });
      } else {
        logger.debug('failed again', shown);
      }
      changed(outage);
    },
    recovered(what: What): void {
      passed();
      const outage = known.get(what);
      if (outage === undefined || outage.facts.endedAt !== null) return;
      close(outage);
      sayOver(outage.isSaid ? 'info' : 'debug', outage);
      if (outage.told.size === 0) known.delete(what);
    },
    /** It is another process's to meet from now on. */
    dropped(what: What): void {
      const outage = known.get(what);
      if (outage === undefined) return;
      forget(what, outage);
      if (outage.facts.endedAt === null) close(outage);
    },
    passed,
    current: (): readonly CurrentTrouble[] =>
      open().map(({ since, facts: { stage, kind, message, failures } }) => ({ stage, kind, message, since, failures })),
  };
}

function remindedAfter(remindAfterMs: number, now: number): Pick<Outage, 'remindAt' | 'remindAfterMs'> {
  return { remindAfterMs, remindAt: now + remindAfterMs };
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
