import type { Clock } from '../core/clock.js';
import type { Outage } from '../observability/log/failure-log.js';
import type { ErrorRecord } from '../storage/feeds/recent-errors.js';

/** What changes within this time is noted together. */
const TOGETHER_MS = 1_000;
/** Until notes that could not be written are tried again, doubled each time: the database may be what is away. */
const AGAIN_MS = { first: 10_000, last: 60_000 };
/** At the end they are waited for no longer. */
const LAST_MS = 500;
/** Outages that wait to be noted, at most; the oldest are forgotten first. */
const WAITING_AT_MOST = 20;

/**
 * Writes outages down for `scanfeed status`, which reads the database alone. Beside the feed: nothing waits for it, and what
 * cannot be written is kept and tried again. Nothing runs while there is nothing to write.
 * @param store see {@link createErrorWriter}
 */
export function createErrorRecorder(
  store: (notes: readonly ErrorRecord[]) => Promise<void>,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
) {
  const closing = new AbortController();
  const waiting = new Map<string, Outage>();
  const open = new Map<string, Outage>();
  let writing: Promise<void> | null = null;

  /** True: written. Its failure is told elsewhere: the same database fails the feed. */
  const write = async (): Promise<boolean> => {
    const taken = [...waiting];
    try {
      const now = clock.monotonic();
      await store(taken.map(([, outage]) => noteOf(outage, now)));
    } catch {
      return false;
    }
    for (const [key, outage] of taken) if (waiting.get(key) === outage) waiting.delete(key);
    return true;
  };
  const writeAll = async () => {
    let pauseMs = TOGETHER_MS;
    while (waiting.size > 0) {
      await clock.sleep(pauseMs, closing.signal);
      if (closing.signal.aborted) break;
      pauseMs = (await write()) ? TOGETHER_MS : Math.min(AGAIN_MS.last, Math.max(AGAIN_MS.first, 2 * pauseMs));
    }
    writing = null;
  };

  return {
    note: (outage: Outage): void => {
      const key = `${outage.stage} ${outage.number}`;
      if (outage.endedAt === null) open.set(key, outage);
      else open.delete(key);
      waiting.delete(key);
      waiting.set(key, outage);
      const [oldest] = waiting.keys();
      if (waiting.size > WAITING_AT_MOST && oldest !== undefined) waiting.delete(oldest);
      if (!closing.signal.aborted) writing ??= writeAll();
    },
    /** Writes what is left, and that nothing goes on here any more, if that is possible at once. Never rejects. */
    close: async (): Promise<void> => {
      closing.abort();
      // What goes on is no longer met by this process.
      for (const [key, outage] of open) waiting.set(key, { ...outage, endedAt: clock.monotonic() });
      const left = async () => {
        await writing;
        if (waiting.size > 0) await write();
      };
      const enough = new AbortController();
      await Promise.race([left(), clock.sleep(LAST_MS, enough.signal)]);
      enough.abort();
    },
  };
}

function noteOf(outage: Outage, now: number): ErrorRecord {
  const { stage, number, kind, message, failures, begunAt, failedAt, nextTryAt, endedAt } = outage;
  const times = { sinceMs: now - begunAt, lastMs: now - failedAt, nextTryMs: now - nextTryAt };
  return { stage, number, kind, message, failures, ...times, endedMs: endedAt === null ? null : now - endedAt };
}
