import type { FeedContext, LeaderContext } from '../context.js';
import type { SyncObserver } from '../ports/index.js';

/** The parts of the engine that passes need. */
export type PassContext = Pick<
  FeedContext,
  'service' | 'store' | 'clock' | 'loader' | 'read' | 'budget' | 'pageLimit' | 'maxHeldPages' | 'pollIntervalMs'
> &
  Pick<LeaderContext, 'retryWakeUp'> & {
    readonly observer: Pick<
      SyncObserver,
      'committed' | 'pageStored' | 'truncated' | 'reading' | 'reconciled' | 'passFinished'
    >;
  };
