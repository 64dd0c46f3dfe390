import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { unusedPort } from '../unused-port.js';

/**
 * A proxy in front of a server. Its port stays the same while it is opened and closed. It can hold the bytes that clients
 * send, and forward them later.
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

  /** Creates a closed gateway, which refuses connections. */
  static async to(url: string): Promise<Gateway> {
    const { hostname, port } = new URL(url);
    return new Gateway(await unusedPort(), { host: hostname, port: Number(port) });
  }

  /** Returns the URL with the address of the gateway. */
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

  /** Cuts open connections, and refuses new ones. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Holds everything that clients send, from the first matching bytes on. Responses are still forwarded. */
  holdFrom(isFirst: (bytes: Buffer) => boolean): void {
    this.#isFirstHeld = isFirst;
  }

  /** Held bytes of all connections. */
  get held(): Buffer {
    return Buffer.concat((this.#held ?? []).map(({ bytes }) => bytes));
  }

  /** Forwards the held bytes and everything after them. */
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
