import { createConnection, createServer, type Server, type Socket } from 'node:net';

/** Outside the range from which systems give out ports, so that nobody gets it by chance while nothing listens. */
const PORTS = { from: 20_000, to: 30_000 };

/** A port on which nothing listens. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/**
 * The way to a server: a port of its own that stays the same while it is opened and closed. What clients send can be held
 * on its way and let through later.
 */
export class Gateway {
  #server: Server | null = null;
  #held: { readonly bytes: Buffer; readonly pass: () => void }[] | null = null;
  #isFirstHeld: (bytes: Buffer) => boolean = () => false;
  readonly #sockets = new Set<Socket>();

  private constructor(
    readonly port: number,
    readonly target: { readonly host: string; readonly port: number },
  ) {}

  /** Closed at first: connections are refused. */
  static async to(url: string): Promise<Gateway> {
    const { hostname, port } = new URL(url);
    return new Gateway(await unusedPort(), { host: hostname, port: Number(port) });
  }

  /** The same URL, through here. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = '127.0.0.1';
    changed.port = String(this.port);
    return changed.href;
  }

  async open(): Promise<void> {
    const server = createServer((socket) => this.#join(socket, createConnection(this.target)));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(this.port, '127.0.0.1', () => resolve());
    });
  }

  /** Cuts what is connected and refuses what comes. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** From the first bytes on that fit, nothing that clients send arrives; answers do. */
  holdFrom(isFirst: (bytes: Buffer) => boolean): void {
    this.#isFirstHeld = isFirst;
  }

  /** What is held, of all connections. */
  get held(): Buffer {
    return Buffer.concat((this.#held ?? []).map(({ bytes }) => bytes));
  }

  /** Lets what is held arrive, and everything after it. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    this.#isFirstHeld = () => false;
    for (const { pass } of held) pass();
  }

  #join(near: Socket, far: Socket): void {
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket);
      socket
        .on('error', () => {})
        .on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
    }
    far.pipe(near);
    near.on('data', (bytes) => {
      const pass = () => void far.write(bytes);
      if (this.#held === null && this.#isFirstHeld(bytes)) this.#held = [];
      if (this.#held === null) pass();
      else this.#held.push({ bytes, pass });
    });
  }
}
