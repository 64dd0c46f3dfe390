import type { DraftEntry, Loading } from './page-draft.js';
import type { SyncObserver } from './ports.js';

const LOADINGS: readonly Loading[] = ['resolved', 'pending', 'skipped'];

/** Tells what became of the truncated ones among entries that were committed. */
export function reportLoading(entries: readonly DraftEntry[], observer: Pick<SyncObserver, 'truncated'>): void {
  for (const kind of LOADINGS) observer.truncated(kind, entries.filter(({ loading }) => loading === kind).length);
}
