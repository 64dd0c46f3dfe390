import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Who sent some bytes: the one who connected to the proxy, or the server behind it. */
export type Side = 'client' | 'server';

/**
 * Looks at a connection's bytes as they arrive, chunk by chunk, and says where it is cut: after how many bytes of this
 * chunk. Null: not yet.
 */
export type CutPoint = (from: Side, bytes: Buffer) => number | null;

/**
 * `reset`: RST to both sides. `end`: both are closed in an orderly way, so that each reads what was sent up to then.
 * `half-close`: only the direction in which the cut lies ends; the other goes on. `silence`: nothing is closed, and
 * nothing passes any more.
 */
export type CutManner = 'reset' | 'end' | 'half-close' | 'silence';

/** How the line behaves, at once and for every connection. */
export interface LineConditions {
  /** Each chunk is held back this long. */
  readonly latencyMs: number;
  /** Added to it on the way to the server. */
  readonly latencyToServerMs: number;
  /** Bytes pass in small pieces; null: as they come. */
  readonly drip: { readonly bytes: number; readonly everyMs: number } | null;
  /** Bytes are taken and lost, in both directions. A connection that lost some stays silent for ever. */
  readonly blackhole: boolean;
}

const CLEAR: LineConditions = { latencyMs: 0, latencyToServerMs: 0, drip: null, blackhole: false };

/** One connection through the proxy. */
export class ProxiedConnection {
  /** Bytes passed on, by sender. */
  readonly passed: Record<Side, number> = { client: 0, server: 0 };
  /** Bytes taken and not passed on. */
  readonly lost: Record<Side, number> = { client: 0, server: 0 };
  /** Settles when the client has closed its side, or had it closed. */
  readonly closed: Promise<void>;
  silent = false;
  readonly #sockets: Readonly<Record<Side, Socket>>;
  readonly #stop = new AbortController();
  /** Senders that the other side believes to have finished. */
  readonly #finished = new Set<Side>();

  constructor(
    client: Socket,
    server: Socket,
    private readonly conditions: () => LineConditions,
    private readonly cutAt: (connection: ProxiedConnection, from: Side, bytes: Buffer) => CutAt | null,
  ) {
    this.#sockets = { client, server };
    this.closed = new Promise((resolve) => client.once('end', resolve).once('close', () => resolve()));
    client.once('close', () => this.#stop.abort());
    for (const side of ['client', 'server'] as const) {
      this.#sockets[side].on('error', () => {}); // read by `#pass`
      void this.#pass(side);
    }
  }

  /** Ends it on both sides, or makes it silent. */
  cut(manner: Exclude<CutManner, 'half-close'>): void {
    if (manner === 'silence') {
      this.silent = true;
      return;
    }
    for (const socket of Object.values(this.#sockets)) {
      if (manner === 'reset') socket.resetAndDestroy();
      else socket.destroySoon();
    }
  }

  /** Ends one direction: what this side still sends is lost; the other direction goes on. */
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

  /** False when the connection was cut. */
  async #passChunk(from: Side, bytes: Buffer, sink: Socket): Promise<boolean> {
    const { latencyMs, latencyToServerMs } = this.conditions();
    const heldBackMs = latencyMs + (from === 'client' ? latencyToServerMs : 0);
    if (heldBackMs > 0) await sleep(heldBackMs, undefined, { signal: this.#stop.signal });
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
    if (cut.manner === 'half-close') this.halfClose(from);
    else this.cut(cut.manner);
    cut.done();
    return cut.manner === 'silence' || cut.manner === 'half-close';
  }

  async #write(from: Side, bytes: Buffer, sink: Socket): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { drip } = this.conditions();
      const piece = bytes.subarray(at, drip === null ? bytes.length : at + drip.bytes);
      // Its callback comes when the system has the bytes, so that a reset right after does not overtake them.
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
  readonly manner: CutManner;
  readonly done: () => void;
}

/** A TCP proxy in front of any server, to hurt connections with. Everything can be changed while it runs. */
export class TcpProxy {
  /** Every connection there was, in order. */
  readonly connections: ProxiedConnection[] = [];
  /** Where new connections are led. */
  target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #conditions: LineConditions = CLEAR;
  #armed: {
    points: Map<ProxiedConnection, CutPoint>;
    make: () => CutPoint;
    manner: CutManner;
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

  /** The same URL, by way of this proxy. */
  urlOf(url: string): string {
    const through = new URL(url);
    through.host = `127.0.0.1:${this.port}`;
    return through.href;
  }

  /** Changes the line; what is left out stays. */
  set(conditions: Partial<LineConditions>): void {
    this.#conditions = { ...this.#conditions, ...conditions };
  }

  /** Takes back conditions and a cut that has not happened. */
  heal(): void {
    this.#conditions = CLEAR;
    this.#armed = null;
  }

  /**
   * Cuts one connection, the first for which a point says so. Each connection opened from now on has a point of its own.
   * Resolves with the connection when it is cut.
   */
  cutOnce(make: () => CutPoint, manner: CutManner): Promise<ProxiedConnection> {
    return new Promise((resolve) => {
      const points = new Map<ProxiedConnection, CutPoint>();
      const done = () => resolve(this.connections.find((connection) => points.has(connection)) as ProxiedConnection);
      this.#armed = { points, make, manner, once: true, done };
    });
  }

  /** Cuts every connection opened from now on where its point says so, until it is healed. */
  cutEach(make: () => CutPoint, manner: CutManner): void {
    this.#armed = { points: new Map(), make, manner, once: false, done: () => {} };
  }

  /** Cuts every connection. */
  cutAll(manner: Exclude<CutManner, 'half-close'>): void {
    for (const connection of this.connections) connection.cut(manner);
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
    return { after, manner: armed.manner, done: armed.done };
  }
}

function targetOf(url: string): TcpProxy['target'] {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** After so many bytes of one side. */
export function afterBytes(side: Side, count: number): CutPoint {
  let seen = 0;
  return (from, bytes) => {
    if (from !== side) return null;
    const before = seen;
    seen += bytes.length;
    return seen >= count ? count - before : null;
  };
}

/** Behind the first occurrence of a text that one side sends. */
export function afterText(side: Side, text: string): CutPoint {
  let seen = Buffer.alloc(0);
  return (from, bytes) => {
    if (from !== side) return null;
    const before = seen.length;
    seen = Buffer.concat([seen, bytes]);
    const found = seen.indexOf(text);
    return found === -1 ? null : found + Buffer.byteLength(text) - before;
  };
}
