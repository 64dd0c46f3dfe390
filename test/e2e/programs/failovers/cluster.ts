import { setTimeout as sleep } from 'node:timers/promises';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { copyToStandby } from './base-backup.js';
import { PostgresServer } from './postgres-server.js';

/** Only processes are killed, never the machine: `fsync` would cost time and save nothing. */
const SETTINGS = { fsync: 'off', shared_buffers: '32MB', max_connections: '60', wal_keep_size: '512MB' };

/** Holds commits back in memory, so that a SIGKILL loses them. */
const UNCLEAN_SETTINGS = {
  ...SETTINGS,
  synchronous_commit: 'off',
  wal_writer_delay: '10s',
  wal_writer_flush_after: '1GB',
};

const PAUSE_MS = 20;
const PATIENCE_MS = 90_000;

/** A primary behind an address that moves, and an asynchronous standby whose replication can be held back. */
export class Cluster {
  primary: PostgresServer;
  /** Null: there is none at the moment. */
  standby: PostgresServer | null = null;
  /** Every server that may be running, for removal and for checks. */
  readonly servers = new Set<PostgresServer>();
  #replication: TcpProxy | null = null;

  private constructor(
    primary: PostgresServer,
    /** The address that the daemons use. */
    readonly address: TcpProxy,
    private readonly signal: AbortSignal,
  ) {
    this.primary = primary;
    this.servers.add(primary);
  }

  /** Starts a primary. Without a standby, it loses its last commits when it is killed. */
  static async start(withStandby: boolean, signal: AbortSignal): Promise<Cluster> {
    const primary = await PostgresServer.create(withStandby ? SETTINGS : UNCLEAN_SETTINGS, signal);
    try {
      await primary.start();
      return new Cluster(primary, await TcpProxy.to(primary.urlOf('scanfeed')), signal);
    } catch (error) {
      await primary.remove();
      throw error;
    }
  }

  /** URL of the database by way of the address. */
  get url(): string {
    return this.address.urlOf(this.primary.urlOf('scanfeed'));
  }

  /** Builds a standby of the present primary. */
  async addStandby(): Promise<void> {
    const standby = await PostgresServer.create(SETTINGS, this.signal);
    this.servers.add(standby);
    this.#replication = await TcpProxy.to(this.primary.urlOf('scanfeed'));
    await copyToStandby(this.primary, standby, this.#replication.port);
    await standby.start();
    this.standby = standby;
  }

  /** Waits until the standby has everything that the primary has now. */
  async waitForStandby(): Promise<void> {
    const [row] = await this.primary.rows<{ lsn: string }>('SELECT pg_current_wal_lsn()::text AS lsn');
    await this.until('the standby catches up', async () => {
      const answer = await this.standby?.rows<{ reached: boolean }>(
        'SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS reached',
        [row?.lsn],
      );
      return answer?.[0]?.reached === true;
    });
  }

  /** From now on the standby receives nothing more. */
  holdReplication(): void {
    this.#replication?.set({ blackhole: true });
  }

  /** Leads new connections to a server. The existing ones are kept, or reset. */
  moveAddress(to: PostgresServer, connections: 'keep' | 'reset'): void {
    this.address.target = { host: '127.0.0.1', port: to.port };
    if (connections === 'reset') this.address.cutAll('reset');
  }

  /** Makes the standby the primary. Returns the number of the first write transaction that it lacks. */
  async promote(): Promise<number> {
    const promoted = this.standby;
    if (promoted === null) throw new Error('there is no standby to promote');
    // What it received may end within a record, which is never replayed: then replay stops short of it.
    let replayed: string | null = null;
    await this.until('the standby replays what it received', async () => {
      const [row] = await promoted.rows<{ lsn: string; complete: boolean | null }>(
        'SELECT lsn::text, lsn >= pg_last_wal_receive_lsn() AS complete FROM pg_last_wal_replay_lsn() AS lsn',
      );
      const stopped = row?.lsn === replayed;
      replayed = row?.lsn ?? null;
      return stopped || row?.complete !== false;
    });
    // Before the promotion: daemons may commit as soon as it is done.
    const next = await promoted.nextTransaction();
    await promoted.rows('SELECT pg_promote(true, 60)');
    this.primary = promoted;
    this.standby = null;
    await this.#replication?.close();
    this.#replication = null;
    return next;
  }

  /** Kills a server and removes its files. */
  async discard(server: PostgresServer): Promise<void> {
    this.servers.delete(server);
    await server.remove();
  }

  /** Waits until `holds` is true. Rejects when that takes longer than anything should. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const startedAt = performance.now();
    while (!(await holds())) {
      if (performance.now() - startedAt > PATIENCE_MS) throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`);
      await sleep(PAUSE_MS, undefined, { signal: this.signal });
    }
  }

  async remove(): Promise<void> {
    await this.address.close();
    await this.#replication?.close();
    for (const server of this.servers) await server.remove();
  }
}
