import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Sender of some bytes: the client of the proxy, or the server behind it. */
export type Side = 'client' | 'server';

/** Decides per chunk of a connection where it is cut: returns the number of bytes to forward before the cut; null: no cut yet. */
export type CutPoint = (from: Side, bytes: Buffer) => number | null;

/**
 * How a connection is cut. `reset`: RST to both sides. `end`: both sides are closed after they have received everything sent
 * before the cut. `half-close`: only the direction of the cut ends, and the other continues. `silence`: both sides stay open,
 * but nothing is forwarded any more.
 */
export type CutKind = 'reset' | 'end' | 'half-close' | 'silence';

/** Network conditions, which take effect immediately on every connection. */
export interface NetworkConditions {
  /** Delay of each chunk to the server. */
  readonly latencyToServerMs: number;
  /** Forwards bytes in small pieces; null: in chunks as received. */
  readonly drip: { readonly bytes: number; readonly everyMs: number } | null;
  /** Discards received bytes in both directions. A connection that lost bytes stays silent permanently. */
  readonly blackhole: boolean;
}

const CLEAR: NetworkConditions = { latencyToServerMs: 0, drip: null, blackhole: false };

/** One connection through the proxy. */
export class ProxiedConnection {
  /** Number of forwarded bytes, by sender. */
  readonly passed: Record<Side, number> = { client: 0, server: 0 };
  /** Number of received bytes that were not forwarded, by sender. */
  readonly lost: Record<Side, number> = { client: 0, server: 0 };
  /** Resolves when the client's side is closed, by the client or the proxy. */
  readonly closed: Promise<void>;
  silent = false;
  readonly #sockets: Readonly<Record<Side, Socket>>;
  readonly #stop = new AbortController();
  /** Senders whose end the other side has received. */
  readonly #finished = new Set<Side>();

  constructor(
    client: Socket,
    server: Socket,
    private readonly conditions: () => NetworkConditions,
    private readonly cutAt: (connection: ProxiedConnection, from: Side, bytes: Buffer) => CutAt | null,
  ) {
    this.#sockets = { client, server };
    this.closed = new Promise((resolve) => client.once('end', resolve).once('close', () => resolve()));
    client.once('close', () => this.#stop.abort());
    for (const side of ['client', 'server'] as const) {
      this.#sockets[side].on('error', () => {}); // `#pass` handles it
      void this.#pass(side);
    }
  }

  /** Ends the connection on both sides, or makes it silent. */
  cut(kind: Exclude<CutKind, 'half-close'>): void {
    if (kind === 'silence') {
      this.silent = true;
      return;
    }
    for (const socket of Object.values(this.#sockets)) {
      if (kind === 'reset') socket.resetAndDestroy();
      else socket.destroySoon();
    }
  }

  /** Ends one direction: later bytes of this side are lost, and the other direction continues. */
  halfClose(from: Side): void {
    this.#finished.add(from);
    this.#sockets[opposite(from)].end();
  }

  async #pass(from: Side): Promise<void> {
    const source = this.#sockets[from];
    const sink = this.#sockets[opposite(from)];
    try {
      for await (const bytes of source.iterator({ destroyOnReturn: false })) {
        if (!(await this.#passChunk(from, bytes as Buffer, sink))) return;
      }
      if (!this.silent && !this.#finished.has(from)) sink.end();
    } catch {
      if (!this.silent) sink.resetAndDestroy();
    }
  }

  /** Forwards a chunk. Returns false if the connection ended. */
  async #passChunk(from: Side, bytes: Buffer, sink: Socket): Promise<boolean> {
    const { latencyToServerMs } = this.conditions();
    if (latencyToServerMs > 0 && from === 'client')
      await sleep(latencyToServerMs, undefined, { signal: this.#stop.signal });
    if (this.conditions().blackhole) this.silent = true;
    if (this.silent || this.#finished.has(from)) {
      this.lost[from] += bytes.length;
      return true;
    }
    const cut = this.cutAt(this, from, bytes);
    const passing = cut === null ? bytes : bytes.subarray(0, cut.after);
    this.lost[from] += bytes.length - passing.length;
    await this.#write(from, passing, sink);
    if (cut === null) return true;
    if (cut.kind === 'half-close') this.halfClose(from);
    else this.cut(cut.kind);
    cut.done();
    return cut.kind === 'silence' || cut.kind === 'half-close';
  }

  async #write(from: Side, bytes: Buffer, sink: Socket): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { drip } = this.conditions();
      const piece = bytes.subarray(at, drip === null ? bytes.length : at + drip.bytes);
      // Waits until the system has the bytes, so that a reset immediately afterwards does not overtake them.
      await new Promise<void>((resolve, reject) => sink.write(piece, (error) => (error ? reject(error) : resolve())));
      this.passed[from] += piece.length;
      at += piece.length;
      if (drip !== null) await sleep(drip.everyMs, undefined, { signal: this.#stop.signal });
    }
  }
}

const opposite = (side: Side): Side => (side === 'client' ? 'server' : 'client');

interface CutAt {
  readonly after: number;
  readonly kind: CutKind;
  readonly done: () => void;
}

/** A TCP proxy in front of any server that delays, loses and cuts connections. All settings can be changed while it runs. */
export class TcpProxy {
  /** All connections so far, in order. */
  readonly connections: ProxiedConnection[] = [];
  /** Target of new connections. */
  target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #conditions: NetworkConditions = CLEAR;
  #armed: {
    points: Map<ProxiedConnection, CutPoint>;
    make: () => CutPoint;
    kind: CutKind;
    once: boolean;
    done: () => void;
  } | null = null;

  private constructor(target: TcpProxy['target']) {
    this.target = target;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  /** Listens on a free loopback port. */
  static async to(target: { readonly host: string; readonly port: number } | string): Promise<TcpProxy> {
    const proxy = new TcpProxy(typeof target === 'string' ? targetOf(target) : target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Returns the URL with the address of this proxy. */
  urlOf(url: string): string {
    const through = new URL(url);
    through.host = `127.0.0.1:${this.port}`;
    return through.href;
  }

  /** Changes the given conditions. */
  set(conditions: Partial<NetworkConditions>): void {
    this.#conditions = { ...this.#conditions, ...conditions };
  }

  /** Resets the conditions, and cancels a cut that has not happened yet. */
  heal(): void {
    this.#conditions = CLEAR;
    this.#armed = null;
  }

  /**
   * Cuts one connection: of those opened from now on, the first that reaches its own cut point. Resolves with the connection
   * when it is cut.
   */
  cutOnce(make: () => CutPoint, kind: CutKind): Promise<ProxiedConnection> {
    return new Promise((resolve) => {
      const points = new Map<ProxiedConnection, CutPoint>();
      const done = () => resolve(this.connections.find((connection) => points.has(connection)) as ProxiedConnection);
      this.#armed = { points, make, kind, once: true, done };
    });
  }

  /** Cuts every connection opened from now on at its cut point, until `heal` is called. */
  cutEach(make: () => CutPoint, kind: CutKind): void {
    this.#armed = { points: new Map(), make, kind, once: false, done: () => {} };
  }

  /** Cuts every connection. */
  cutAll(kind: Exclude<CutKind, 'half-close'>): void {
    for (const connection of this.connections) connection.cut(kind);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(client: Socket): void {
    const server = connect({ ...this.target, allowHalfOpen: true, noDelay: true });
    for (const socket of [client, server]) {
      this.#sockets.add(socket.on('close', () => this.#sockets.delete(socket)));
    }
    const connection = new ProxiedConnection(
      client,
      server,
      () => this.#conditions,
      (at, from, bytes) => this.#cutAt(at, from, bytes),
    );
    this.connections.push(connection);
    const armed = this.#armed;
    if (armed !== null) armed.points.set(connection, armed.make());
  }

  #cutAt(connection: ProxiedConnection, from: Side, bytes: Buffer): CutAt | null {
    const armed = this.#armed;
    const after = armed?.points.get(connection)?.(from, bytes) ?? null;
    if (armed === null || after === null) return null;
    if (armed.once) {
      this.#armed = null;
      for (const other of armed.points.keys()) if (other !== connection) armed.points.delete(other);
    } else armed.points.delete(connection);
    return { after, kind: armed.kind, done: armed.done };
  }
}

function targetOf(url: string): TcpProxy['target'] {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** Returns the point after this number of bytes of one side. */
export function afterBytes(side: Side, count: number): CutPoint {
  let seen = 0;
  return (from, bytes) => {
    if (from !== side) return null;
    const before = seen;
    seen += bytes.length;
    return seen >= count ? count - before : null;
  };
}
