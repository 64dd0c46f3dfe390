import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** A request as it arrived. */
export interface RecordedRequest {
  readonly method: string;
  /** As in the request line, still encoded. */
  readonly url: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** Number of the connection it came on, from 1. */
  readonly connection: number;
}

/** Responds to one request, well or badly; `socket` is for what HTTP does not allow. */
export type Answer = (response: ServerResponse, socket: Socket, request: RecordedRequest) => void;

/**
 * An HTTP server that answers each request with the next of the queued responses and records what it was asked. A request
 * for which no response is queued waits, which makes it a server that never answers.
 */
export class ScriptedService {
  readonly requests: RecordedRequest[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Map<Socket, number>();
  readonly #answers: Answer[] = [];
  readonly #arrivals: { count: number; resolve: () => void }[] = [];

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.keepAliveTimeout = 0; // only a script closes connections
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.#sockets.set(socket, this.connections);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(): Promise<ScriptedService> {
    const service = new ScriptedService();
    await new Promise<void>((resolve) => service.#server.listen(0, '127.0.0.1', resolve));
    return service;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** Queues responses, one for each request to come. */
  answer(...answers: Answer[]): this {
    this.#answers.push(...answers);
    return this;
  }

  /** The last request that arrived. */
  get last(): RecordedRequest {
    const last = this.requests.at(-1);
    if (last === undefined) throw new Error('no request has arrived');
    return last;
  }

  /** Resolves once `count` requests in all have arrived. */
  arrived(count: number): Promise<void> {
    if (this.requests.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#arrivals.push({ count, resolve }));
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets.keys()) socket.destroy();
    await closed;
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const url = new URL(incoming.url ?? '', this.baseUrl);
    const request: RecordedRequest = {
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      body: Buffer.concat(chunks),
      connection: this.#sockets.get(incoming.socket) ?? 0,
    };
    this.requests.push(request);
    const answer = this.#answers.shift();
    answer?.(response, incoming.socket, request);
    for (const arrival of this.#arrivals) if (this.requests.length >= arrival.count) arrival.resolve();
  }
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** A whole response. Objects are sent as JSON. */
export function reply(status: number, body: unknown = '', headers: Headers = {}): Answer {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(isRaw ? body : JSON.stringify(body));
  };
}

/** The error body of interface 2.5. */
export function refuse(status: number, error: string, headers: Headers = {}): Answer {
  return reply(status, { error }, headers);
}

/** Bytes as they are, header included; then the connection ends. */
export function raw(...parts: (string | Uint8Array)[]): Answer {
  return (_, socket) => {
    for (const part of parts) socket.write(part);
    socket.end();
  };
}

/** Bytes as they are, header included; then silence on an open connection. */
export function stall(...parts: (string | Uint8Array)[]): Answer {
  return (_, socket) => {
    for (const part of parts) socket.write(part);
  };
}

/** Never responds. */
export const silence: Answer = () => undefined;

/** Ends the connection without a byte, as a server does with an idle one. */
export const hangUp: Answer = (_, socket) => void socket.end();

/** Resets the connection without a byte. */
export const reset: Answer = (_, socket) => void socket.resetAndDestroy();
