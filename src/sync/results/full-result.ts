import { type CheckedEntry, checkRun, withoutMarkdown } from '../page/check-entries.js';
import type { FeedRun, PendingReason, RawRun, StoredResult, StoredRevision } from '../ports/index.js';

/** The result of a single-run response for a truncated entry. */
export type ResultVerdict =
  /** The same revision with its full values, or a higher one. */
  | { readonly kind: 'loaded'; readonly entry: CheckedEntry }
  | {
      readonly kind: 'pending';
      readonly reason: PendingReason;
      /** Of the request, if it failed. */
      readonly error?: unknown;
      /** Minimum pause that the service asked for, milliseconds. */
      readonly retryAfterMs?: number | undefined;
    };

/** Returns whether a wanted value is missing from the entry (interface 4.2 rule 6 does not define which value was too large). */
export function needsFullResult(run: FeedRun, markdown: boolean): boolean {
  if (!run.truncated) return false;
  return (run.status === 'completed' && !run.hasData) || (markdown && !run.hasMarkdown);
}

/** Returns whether the database already has all wanted values of this revision, or a higher revision. */
export function isStoredInFull(run: FeedRun, stored: StoredResult | undefined, markdown: boolean): boolean {
  if (stored === undefined || stored.revision < run.revision) return false;
  return stored.revision > run.revision || (stored.complete && (stored.markdownKnown || !markdown));
}

/**
 * Checks a single-run response against the requested scan and revision. Pure.
 * @param revision 0 if no revision of this run is stored
 */
export function judgeResult(
  { scanId, revision, status }: StoredRevision & { readonly status?: FeedRun['status'] },
  answer: RawRun,
  markdown: boolean,
): ResultVerdict {
  const { run } = answer;
  if (run.scanId !== scanId) return pending('invalid_result');
  if (run.status === 'processing') return pending('processing');
  const entry = checkRun(answer);
  if (entry === null) return pending('invalid_result');
  const found = entry.accepted.run;
  if (found.status === 'completed' && 'data' in entry.accepted.replaced) return pending('invalid_result');
  if (found.revision < revision) return pending('older_revision');
  // No feed entry has this revision, so nothing else shows whether the partner is in test mode.
  if (found.revision > revision && leavesTestModeOpen(run)) return pending('newer_revision');
  // The request was for the full run (interface 2.2), so only what the response has counts, whatever its flag says.
  if (found.status === 'completed' && !found.hasData) return pending('still_truncated');
  // One revision cannot be both completed and failed. The result stays pending until there is a newer revision.
  if (found.revision === revision && status !== undefined && found.status !== status) return pending('invalid_result');
  // A full response without markdown means that there is none. That is stored, or every delivery would request it again.
  return { kind: 'loaded', entry: markdown && !found.hasMarkdown ? withoutMarkdown(entry) : entry };
}

function leavesTestModeOpen({ status, partnerTestMode }: RawRun['run']): boolean {
  return status === 'completed' && (partnerTestMode === undefined || partnerTestMode === null);
}

function pending(reason: PendingReason): ResultVerdict {
  return { kind: 'pending', reason };
}
