import { isIP, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** SSLRequest (PostgreSQL documentation, 55.7): its length, and the code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/**
 * The socket of `sslmode=prefer`: asks the server for TLS once it is connected, and goes on in the clear where the server
 * has none. The driver knows only "always" and "never", and takes this for a plain socket.
 */
export class OpportunisticTlsSocket extends Duplex {
  readonly #tcp = new Socket();
  readonly #options: ConnectionOptions;
  /** What the driver's bytes go through: null until the server has answered. */
  #inner: Socket | null = null;

  constructor(options: ConnectionOptions) {
    super();
    this.#options = options;
    this.#tcp.on('error', (error) => this.destroy(error));
    this.#tcp.on('close', () => this.destroy());
  }

  /** Emits `connect` when the connection can be used. */
  connect(port: number, host: string): this {
    this.#tcp.once('connect', () => this.#tcp.write(SSL_REQUEST));
    this.#tcp.once('data', (answer) => this.#answered(answer, host));
    this.#tcp.once('end', () => {
      if (this.#inner === null) this.destroy(new Error('the server closed the connection'));
    });
    this.#tcp.connect(port, host);
    return this;
  }

  #answered(answer: Buffer, host: string): void {
    this.#tcp.pause();
    // More than the one byte would be bytes of an attacker, taken later for encrypted ones (CVE-2021-23222).
    if (answer.equals(Buffer.from('N'))) this.#use(this.#tcp);
    else if (answer.equals(Buffer.from('S'))) this.#encrypt(host);
    else this.destroy(new Error('the server does not speak PostgreSQL'));
  }

  #encrypt(host: string): void {
    const servername = isIP(host) === 0 ? { servername: host } : {};
    const tls = connectTls({ ...this.#options, ...keyOf(this.#options), socket: this.#tcp, host, ...servername });
    tls.on('error', (error) => this.destroy(error));
    tls.on('close', () => this.destroy());
    tls.once('secureConnect', () => this.#use(tls));
  }

  #use(socket: Socket): void {
    this.#inner = socket;
    socket.on('data', (chunk) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    this.emit('connect');
    socket.resume();
  }

  override _read(): void {
    this.#inner?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    (this.#inner ?? this.#tcp).write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    // In one system call, as a plain socket would; nothing is copied, since a page may be among them.
    const socket = this.#inner ?? this.#tcp;
    socket.cork();
    for (const { chunk } of chunks.slice(0, -1)) socket.write(chunk);
    socket.write(chunks.at(-1)?.chunk ?? '', done);
    socket.uncork();
  }

  override _final(done: () => void): void {
    (this.#inner ?? this.#tcp).end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#inner?.destroy();
    this.#tcp.destroy();
    done(error);
  }

  // What the driver asks of a socket besides.
  setNoDelay(on?: boolean): this {
    this.#tcp.setNoDelay(on);
    return this;
  }
  setKeepAlive(on?: boolean, initialDelayMs?: number): this {
    this.#tcp.setKeepAlive(on, initialDelayMs);
    return this;
  }
  ref(): this {
    this.#tcp.ref();
    return this;
  }
  unref(): this {
    this.#tcp.unref();
    return this;
  }
}

function keyOf(options: ConnectionOptions): Pick<ConnectionOptions, 'key'> {
  return options.key === undefined ? {} : { key: options.key };
}
