import { type RawBuilder, sql } from 'kysely';
import type { ModelStore } from '../simulation/model-store.js';
import { tables } from './store.js';
import { HOUR_MS } from './store-history.js';

/** Rows of a store as plain values, by name, in a form that is comparable between PostgreSQL and the model. */
export type StoreState = ReadonlyMap<string, unknown>;

/** Times are compared as hours from now: both stores set them at nearly the same time. */
export function hoursAgo(time: number | Date | null, now = Date.now()): number | null {
  if (time === null) return null;
  const ms = typeof time === 'number' ? time : time.getTime();
  return Number.isFinite(ms) ? Math.round((now - ms) / HOUR_MS) : ms;
}

/** Reads the rows of all histories from PostgreSQL. */
export async function postgresState(
  rows: <T>(query: RawBuilder<T>) => Promise<T[]>,
  pattern: string,
): Promise<StoreState> {
  const state = new Map<string, unknown>();
  for (const { name, row } of await rows(sql<{ name: string; row: Record<string, unknown> }>`
    SELECT 'run ' || scan_id AS name, jsonb_build_object('revision', revision, 'status', status, 'reason', failure_reason,
      'error', error, 'data', data, 'markdown', markdown, 'markdownAbsent', markdown_absent,
      'deliveredAt', extract(epoch FROM delivered_at) * 1000, 'environment', environment, 'testMode', partner_test_mode,
      'testModeRevision', test_mode_revision,
      'slug', document_type_slug, 'typeName', document_type_name, 'partnerName', partner_name, 'ocrConfidence', ocr_confidence,
      'submittedAt', extract(epoch FROM submitted_at) * 1000, 'completedAt', extract(epoch FROM completed_at) * 1000, 'extra', extra,
      'feed', feed, 'repaired', repaired, 'pending', pending_reason, 'attempts', attempts,
      'due', next_try_at <= clock_timestamp()) AS row
    FROM ${tables.runs} WHERE scan_id LIKE ${pattern}
    UNION ALL
    SELECT 'history ' || scan_id || ' ' || revision, jsonb_build_object('data', data, 'pending', pending_reason)
    FROM ${tables.runHistory} WHERE scan_id LIKE ${pattern}
    UNION ALL
    SELECT 'quarantine ' || feed || '/' || replace(identity, 'sha256:', ''), jsonb_build_object('state', state,
      'reason', reason, 'timesSeen', times_seen, 'payload', encode(payload, 'hex'))
    FROM ${tables.quarantine} WHERE feed LIKE ${pattern}`)) {
    state.set(name, row);
  }
  return state;
}

/** Reads the rows of the model. */
export function modelState({ rows, history, quarantine }: ModelStore, now: number): StoreState {
  const state = new Map<string, unknown>();
  for (const row of rows.values()) {
    const { scanId, data, pending, pendingSince, nextTryAt, ...columns } = row;
    const time = (text: string | null) => (text === null ? null : Date.parse(text));
    state.set(`run ${scanId}`, {
      ...columns,
      data: data === null ? null : JSON.parse(data),
      deliveredAt: time(row.deliveredAt),
      submittedAt: time(row.submittedAt),
      completedAt: time(row.completedAt),
      pending,
      due: pending === null ? null : nextTryAt <= now,
    });
  }
  for (const { scanId, revision, data, pending } of history) {
    state.set(`history ${scanId} ${revision}`, { data: data === null ? null : JSON.parse(data), pending });
  }
  for (const [identity, { state: entryState, reason, timesSeen, payload }] of quarantine) {
    const text = Buffer.from(payload).toString('hex');
    state.set(`quarantine ${identity}`, { state: entryState, reason, timesSeen, payload: text });
  }
  return state;
}
