import type { LeaderContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';
import type { UnfinishedWork } from './unfinished-work.js';

/**
 * Renews the lease with each round, well before it expires. The same statement reads the figures of the feed and which passes are
 * unfinished. Resolves when the lease is lost or the signal aborts. While the database is unreachable it keeps retrying: if no
 * other replica took the lease, it is still valid, and if one did, the fence rejects the commits of this process.
 */
export async function keepLease(
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  signal: AbortSignal,
): Promise<void> {
  const { leases, observer, databaseAnswered } = context;
  let isFailing = false;
  for (;;) {
    const round = await leases.renew(lease, signal);
    if (round === null) return;
    if ('error' in round) {
      isFailing = true;
      observer.failed('lease', round.error, round.pauseMs);
      continue;
    }
    databaseAnswered();
    if (isFailing) observer.recovered('lease');
    isFailing = false;
    if (round.answer === null) return; // lost, but the database answered
    observer.leading(round.askedAt + round.answer.heldForMs);
    observer.status(round.answer.status);
    work.update(round.answer);
  }
}
