import type { Cluster } from './cluster.js';
import type { PostgresServer } from './postgres-server.js';

/**
 * How a round ends the primary. `crash`: it is killed, then the standby is promoted, then the address moves. `early`: the
 * address moves before the standby is promoted. `back`: the address leads to the standby and back to the primary first.
 * `split`: the standby is promoted while the old primary lives, and the address leads back to that one for a moment.
 * `unclean`: a single server is killed and started again.
 */
export type RoundKind = 'crash' | 'early' | 'back' | 'split' | 'unclean';

export interface Round {
  readonly kind: RoundKind;
  /** Write transactions between the last one that the standby receives and the end of the primary. */
  readonly transactions: number;
  /** Whether replication is held back; otherwise the standby may be up to date. */
  readonly held: boolean;
  /** Whether passes are requested before that, after it, or not at all. */
  readonly requests: 'before' | 'after' | 'none';
}

const KINDS: readonly RoundKind[] = ['crash', 'early', 'back', 'split'];
const HELD_SHARE = 0.9;
const MOST_TRANSACTIONS = 160;

/** Chooses what happens next; every kind is used in turn. */
export function nextRound(number: number, random: () => number, single: boolean): Round {
  const kind = single ? 'unclean' : (KINDS[number % KINDS.length] as RoundKind);
  const transactions = 2 + Math.floor(random() * MOST_TRANSACTIONS);
  const requests = (['before', 'after', 'none'] as const)[Math.floor(random() * 3)] ?? 'none';
  return { kind, transactions, held: single || random() < HELD_SHARE, requests };
}

/** What a round needs of the campaign. */
export interface Failover {
  readonly cluster: Cluster;
  /** Connections to a server that lives on are reset when the address moves away: a pooler would keep them. */
  readonly pooled: boolean;
  /** Waits until each feed has committed on a server since now. */
  readonly untilFeedsCommit: (server: PostgresServer) => Promise<void>;
}

/** Ends the primary in one of the ways. Returns the number of transactions that the database lost. */
export const FAILOVERS: Readonly<Record<RoundKind, (failover: Failover) => Promise<number>>> = {
  crash: async ({ cluster }) => {
    const old = cluster.primary;
    const written = await old.nextTransaction();
    await cluster.discard(old);
    const kept = await cluster.promote();
    cluster.moveAddress(cluster.primary, 'reset');
    return lost(written, kept);
  },
  early: async ({ cluster }) => {
    const old = cluster.primary;
    const written = await old.nextTransaction();
    await cluster.discard(old);
    await leadToStandby(cluster);
    return lost(written, await cluster.promote());
  },
  back: async ({ cluster, pooled, untilFeedsCommit }) => {
    const old = cluster.primary;
    const standby = await leadToStandby(cluster);
    cluster.moveAddress(old, pooled ? 'reset' : 'keep');
    await untilFeedsCommit(old);
    const written = await old.nextTransaction();
    await cluster.discard(old);
    const kept = await cluster.promote();
    cluster.moveAddress(standby, 'reset');
    return lost(written, kept);
  },
  split: async ({ cluster, untilFeedsCommit }) => {
    const old = cluster.primary;
    const kept = await cluster.promote();
    cluster.moveAddress(cluster.primary, 'reset');
    await untilFeedsCommit(cluster.primary);
    cluster.moveAddress(old, 'reset');
    await untilFeedsCommit(old);
    const written = await old.nextTransaction();
    cluster.moveAddress(cluster.primary, 'reset');
    await cluster.discard(old);
    return lost(written, kept);
  },
  unclean: async ({ cluster: { primary } }) => {
    const written = await primary.nextTransaction();
    await primary.kill();
    await primary.start();
    return lost(written, await primary.nextTransaction());
  },
};

const lost = (written: number, kept: number): number => Math.max(0, written - kept);

/** Moves the address to the standby, and waits until that has refused a write. */
async function leadToStandby(cluster: Cluster): Promise<PostgresServer> {
  const { standby } = cluster;
  if (standby === null) throw new Error('there is no standby');
  cluster.moveAddress(standby, 'reset');
  await cluster.until('the standby refuses a write', async () =>
    (await standby.log()).includes('in a read-only transaction'),
  );
  return standby;
}
