import type { Failure } from '../../core/errors.js';
import type { QuarantineEntry } from '../ports/index.js';

/** Why an entry is unusable. Without the entry, which would stay in memory. */
export type UnusableReason = Pick<QuarantineEntry, 'reason' | 'detail'>;

/** At least half of the recent entries are unusable, so their shape has changed. The feed holds instead of quarantining them. */
export class MostlyBad extends Error implements Failure {
  override readonly name = 'MostlyBad';
  readonly kind = 'mostly_bad';
  readonly action = 'hold';

  /** @param entries number of the recent entries, unusable or not */
  constructor(entries: number, reasons: readonly UnusableReason[]) {
    const [cause, remedy] = reasons.some(({ reason }) => reason === 'constraint') ? OF_DATABASE : OF_SERVICE;
    super(
      `${reasons.length} of the last ${entries} entries of the feed are unusable (${countedReasons(reasons)}): ${cause}. The page is neither stored nor skipped, and is requested again. ${remedy}`,
    );
  }
}

const OF_SERVICE = [
  'the service has probably changed what it sends',
  'Ask the operators of the service what changed, or use a release of scanfeed that supports it. Meanwhile `scanfeed quarantine accept` lets the feed continue without them',
] as const;
const OF_DATABASE = [
  'a constraint of the database refuses them',
  'Drop the constraint if it was added to the tables of scanfeed, as `scanfeed doctor` shows',
] as const;

/** Returns the reasons with their counts, the most frequent first: `status 180, revision 3`. A constraint is named. */
function countedReasons(reasons: readonly UnusableReason[]): string {
  const counts = new Map<string, number>();
  for (const { reason, detail } of reasons) {
    const name = reason === 'constraint' ? detail : reason;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const ordered = [...counts].sort(([, a], [, b]) => b - a);
  return ordered.map(([name, count]) => `${name} ${count}`).join(', ');
}
