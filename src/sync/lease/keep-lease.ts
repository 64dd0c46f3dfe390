import type { LeaderContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';
import type { UnfinishedWork } from './unfinished-work.js';

/**
 * Renews the lease well before it expires. The same statement reads the figures of the feed and which passes are unfinished.
 * Resolves when the lease is lost or the signal aborts. While the database is unreachable it keeps retrying: if no other replica
 * took the lease, it is still valid, and if one did, the fence rejects the commits of this process.
 */
export async function keepLease(
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  signal: AbortSignal,
): Promise<void> {
  const { leases, observer, recovery } = context;
  let isFailing = false;
  for (;;) {
    const round = await leases.renew(lease, signal);
    if (round === null) return;
    if ('error' in round) {
      isFailing = true;
      observer.failed('lease', round.error, round.pauseMs);
      continue;
    }
    const { askedAt, answer } = round;
    if (answer === 'extended') continue; // by a commit, which has reported it
    recovery.answered();
    if (isFailing) observer.recovered('lease');
    isFailing = false;
    if (answer === null) return; // lost, but the database answered
    observer.leading(askedAt + answer.heldForMs);
    observer.status(answer.status);
    work.update(answer);
  }
}
