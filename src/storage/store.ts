import type { FeedStore } from '../sync/ports.js';
import { createCommits } from './commit-page.js';
import type { CommitSettings } from './commit-settings.js';
import { createDatabaseClock } from './database-clock.js';
import { createKeyReader } from './key-reader.js';
import { acquireLease, releaseLease, renewLease } from './lease.js';
import { beginPass, nextPass, notePace, readLastPass } from './passes.js';
import { adoptPending, duePending, findStored, postponePending } from './pending.js';
import type { Database } from './pool.js';
import { findDelivered, movePosition, noteStuck, readEarlierPositions, readPosition } from './position.js';
import { notYetQuarantined } from './quarantine.js';
import { tablesOf } from './schema.js';
import { readStatus } from './status.js';

export interface StoreSettings extends Omit<CommitSettings, 'databaseClock'> {
  readonly schema: string;
  /** Told how long each commit took, in milliseconds, failed ones included. */
  readonly onTransaction?: (durationMs: number) => void;
}

/** PostgreSQL as the engine's store. */
export function createStore(database: Database, settings: StoreSettings): FeedStore {
  const db = database.sql;
  const tables = tablesOf(settings.schema);
  const databaseClock = createDatabaseClock(settings.monotonic);
  const { commitPage, commitPass, commitResults, tryEntries } = createCommits(db, tables, {
    ...settings,
    databaseClock,
  });
  const timed = async <T>(work: Promise<T>): Promise<T> => {
    const startedAt = settings.monotonic();
    try {
      return await work;
    } finally {
      settings.onTransaction?.(settings.monotonic() - startedAt);
    }
  };
  return {
    acquireLease: (feed, holder, ttlMs, replaced) =>
      acquireLease(db, tables, databaseClock, feed, { holder, replaced: replaced ?? null }, ttlMs),
    renewLease: (lease, ttlMs) => renewLease(db, tables, databaseClock, lease, ttlMs),
    releaseLease: (lease) => releaseLease(db, tables, lease),
    readPosition: (feed) => readPosition(db, tables, databaseClock, feed),
    readEarlierPositions: (feed) => readEarlierPositions(db, tables, feed),
    findDelivered: (from, to, limit) => findDelivered(db, tables, from, to, limit),
    movePosition: (lease, from, to, reason) => movePosition(db, tables, lease, from, to, reason),
    noteStuck: (lease, stuck) => noteStuck(db, tables, lease, stuck),
    readStatus: (feed) => readStatus(db, tables, feed, settings.monotonic, databaseClock),
    findStored: (scanIds) => findStored(db, tables, scanIds),
    announce: createKeyReader(database, tables, settings.monotonic),
    tryEntries,
    commitPage: (commit) => timed(commitPage(commit)),
    commitResults: (lease, batch, quarantine) => timed(commitResults(lease, batch, quarantine)),
    nextPass: (feed, kind) => nextPass(db, tables, feed, kind),
    readLastPass: (feed, kind) => readLastPass(db, tables, feed, kind),
    beginPass: (lease, pass) => beginPass(db, tables, lease, pass),
    commitPass: (commit) => timed(commitPass(commit)),
    notYetQuarantined: (feed, entries) => notYetQuarantined(db, tables, feed, entries),
    adoptPending: (lease) => adoptPending(db, tables, lease),
    notePace: (lease, pace) => notePace(db, tables, lease, pace),
    duePending: (feed, limit) => duePending(db, tables, feed, limit),
    postponePending: (lease, tries) => postponePending(db, tables, lease, tries),
  };
}
