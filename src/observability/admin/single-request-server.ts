import { STATUS_CODES } from 'node:http';
import { createServer, type Socket } from 'node:net';
import type { Clock } from '../../core/clock.js';

/** Maximum number of open connections: far below 1,024 descriptors, which also serve the service and PostgreSQL. */
const MAX_CONNECTIONS = 128;
/** Maximum age of a connection in any state, milliseconds. */
const MAX_AGE_MS = 10_000;
/** Maximum length of a request line and its headers together, bytes. */
const MAX_HEAD_BYTES = 8_192;

const END_OF_HEAD = '\r\n\r\n';
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/;

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWanted: () => boolean;
}

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * An HTTP server for untrusted clients: it reads one request per connection, uses only its request line, responds and closes. When
 * there are too many connections, it closes the oldest one of the address that has the most (docs/decisions/0016).
 * @param answer must not reject
 */
export function createSingleRequestServer(answer: (request: Request) => Promise<Answer>, clock: Clock) {
  /** Connections by remote address, oldest first. */
  const open = new Map<string, Set<Socket>>();
  let count = 0;

  const forget = (socket: Socket, address: string) => {
    const sockets = open.get(address);
    if (!sockets?.delete(socket)) return;
    count -= 1;
    if (sockets.size === 0) open.delete(address);
  };
  const evictOne = () => {
    const [[address, sockets] = ['', []]] = [...open].sort(([, one], [, other]) => other.size - one.size);
    const [oldest] = sockets;
    if (oldest === undefined) return;
    forget(oldest, address);
    drop(oldest);
  };

  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const address = socket.remoteAddress ?? '';
    open.set(address, (open.get(address) ?? new Set()).add(socket));
    count += 1;
    if (count > MAX_CONNECTIONS) evictOne();
    const closed = new AbortController();
    socket
      .on('error', () => {})
      .once('close', () => {
        forget(socket, address);
        closed.abort();
      });
    void clock.sleep(MAX_AGE_MS, closed.signal).then(() => drop(socket));
    readHead(socket, async (head) => {
      const request = parse(head, () => !socket.destroyed);
      const given = 'status' in request ? request : await answer(request);
      if (!socket.destroyed) {
        socket.cork();
        socket.write(renderHead(given, clock.now()));
        if (!head.startsWith('HEAD ')) socket.write(given.body);
        socket.uncork();
      }
      socket.destroySoon();
    });
  });
  return {
    server,
    closeConnections(): void {
      for (const sockets of open.values()) for (const socket of sockets) socket.destroy();
    },
  };
}

/** Closes the connection with a reset, which also frees the kernel's send buffer if the client does not read. */
function drop(socket: Socket): void {
  if (socket.writableEnded)
    socket.destroy(); // libuv cannot reset a connection that is shutting down
  else socket.resetAndDestroy();
}

/** Calls back once, with the head of a request or with bytes that are too long or not a request. Reads nothing after them. */
function readHead(socket: Socket, onHead: (head: string) => void): void {
  let head = '';
  const onData = (chunk: Buffer) => {
    head += chunk.toString('latin1', 0, MAX_HEAD_BYTES - head.length);
    if (/^[A-Z]/.test(head) && head.length < MAX_HEAD_BYTES && !head.includes(END_OF_HEAD)) return;
    socket.pause().off('data', onData);
    onHead(head);
  };
  socket.on('data', onData).once('end', () => socket.destroy());
}

function parse(head: string, isWanted: Request['isWanted']): Request | Answer {
  const [, method, target] = REQUEST_LINE.exec(head) ?? [];
  if (!head.includes(END_OF_HEAD) && head.length === MAX_HEAD_BYTES)
    return textAnswer(431, 'the request line and headers are too long');
  if (method === undefined || target === undefined) return textAnswer(400, 'not an HTTP/1.1 request');
  const [path = '/', query] = target.split('?', 2);
  return { method, path, query: new URLSearchParams(query), isWanted };
}

export function textAnswer(status: number, text: string): Answer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text.replace(/\s+/g, ' ')}\n` };
}

/** @param policy its content security policy */
export function htmlAnswer(body: string, policy: string): Answer {
  const headers = { 'content-security-policy': policy };
  return { status: 200, contentType: 'text/html; charset=utf-8', body, headers };
}

function renderHead({ status, contentType, body, headers }: Answer, now: number): string {
  const fields = {
    date: new Date(now).toUTCString(),
    connection: 'close',
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`;
}
