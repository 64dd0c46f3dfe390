import type { Clock } from '../core/clock.js';
import type { Outage } from '../observability/log/failure-log.js';
import type { ErrorRecord } from '../storage/operator/recent-errors.js';
import { createWakeUp } from '../sync/waiting/wake-up.js';

/** Changes within this time are written together, unless an outage ends, milliseconds. */
const BATCH_MS = 1_000;
/** Pauses before failed writes are retried, milliseconds, doubling each time: the database itself may be down. */
const RETRY_MS = { first: 10_000, max: 60_000 };
/** Maximum time to write at the end of the process, milliseconds. */
const CLOSE_TIMEOUT_MS = 500;
/** Maximum number of outages that wait to be written; the oldest are dropped first. */
const MAX_WAITING = 20;

/**
 * Records outages for `scanfeed status`, which reads only the database. Nothing waits for the writes; failed ones are retried. No
 * timer runs while there is nothing to write.
 * @param write see {@link createErrorWriter}
 */
export function createErrorRecorder(write: (records: readonly ErrorRecord[]) => Promise<void>, clock: Clock) {
  const closing = new AbortController();
  const waiting = new Map<string, Outage>();
  const open = new Map<string, Outage>();
  let writing: Promise<void> | null = null;
  /** Woken by the end of an outage: the database may accept writes again. */
  const pause = createWakeUp(clock);

  /** Returns whether the write succeeded. A failure needs no log line: the same database fails the feed. */
  const tryWrite = async (): Promise<boolean> => {
    const batch = [...waiting];
    try {
      const now = clock.monotonic();
      await write(batch.map(([, outage]) => recordOf(outage, now)));
    } catch {
      return false;
    }
    for (const [key, outage] of batch) if (waiting.get(key) === outage) waiting.delete(key);
    return true;
  };
  const writeAll = async () => {
    let pauseMs = BATCH_MS;
    while (waiting.size > 0) {
      await pause.sleep(pauseMs, closing.signal);
      if (closing.signal.aborted) break;
      pauseMs = (await tryWrite()) ? BATCH_MS : Math.min(RETRY_MS.max, Math.max(RETRY_MS.first, 2 * pauseMs));
    }
    writing = null;
  };

  return {
    record: (outage: Outage): void => {
      const key = `${outage.stage} ${outage.number}`;
      if (outage.endedAt === null) open.set(key, outage);
      else open.delete(key);
      waiting.delete(key);
      waiting.set(key, outage);
      const [oldest] = waiting.keys();
      if (waiting.size > MAX_WAITING && oldest !== undefined) waiting.delete(oldest);
      if (!closing.signal.aborted) writing ??= writeAll();
      if (outage.endedAt !== null) pause.wake();
    },
    /** Writes the remaining records and the end of open outages, unless that takes too long. Never rejects. */
    close: async (): Promise<void> => {
      closing.abort();
      // This process no longer observes the open outages.
      for (const [key, outage] of open) waiting.set(key, { ...outage, endedAt: clock.monotonic() });
      const writeRemaining = async () => {
        await writing;
        if (waiting.size > 0) await tryWrite();
      };
      const timeout = new AbortController();
      await Promise.race([writeRemaining(), clock.sleep(CLOSE_TIMEOUT_MS, timeout.signal)]);
      timeout.abort();
    },
  };
}

function recordOf({ since: _, begunAt, failedAt, nextTryAt, endedAt, ...outage }: Outage, now: number): ErrorRecord {
  const times = { sinceMs: now - begunAt, lastMs: now - failedAt, nextTryMs: now - nextTryAt };
  return { ...outage, ...times, endedMs: endedAt === null ? null : now - endedAt };
}
