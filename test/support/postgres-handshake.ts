import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { TestCertificate } from './certificate.js';

/** What the server says to a request for TLS. */
export type TlsAnswer = TestCertificate | 'none' | 'injected';

export interface HandshakeServer {
  readonly port: number;
  /** How each client that logged in came: `tls` or `plain`. */
  readonly logins: readonly string[];
  close(): Promise<void>;
}

const SSL_REQUEST_CODE = 80_877_103;
const AUTHENTICATION_OK = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** A server that speaks PostgreSQL's protocol up to the login, with TLS or without; everyone may log in. */
export async function startHandshakeServer(answer: TlsAnswer): Promise<HandshakeServer> {
  const logins: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.once('data', (first) => {
      if (first.readInt32BE(4) !== SSL_REQUEST_CODE) return logIn(socket, 'plain');
      if (answer === 'none' || answer === 'injected') {
        socket.write(answer === 'none' ? 'N' : Buffer.concat([Buffer.from('N'), AUTHENTICATION_OK, READY_FOR_QUERY]));
        return socket.once('data', () => logIn(socket, 'plain'));
      }
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, ...answer }).on('error', () => {});
      return secure.once('data', () => logIn(secure, 'tls'));
    });
  });
  const logIn = (socket: Socket, how: string) => {
    logins.push(how);
    socket.write(Buffer.concat([AUTHENTICATION_OK, READY_FOR_QUERY]));
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    logins,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
