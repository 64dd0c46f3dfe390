import { connect } from 'node:net';

/** PostgreSQL's SSLRequest: length 8, code 1234.5679. The server answers with one letter. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Asks a server whether it encrypts, as libpq does for `sslmode=prefer`. Rejects where it cannot be reached. */
export function offersTls(host: string, port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no answer in time')));
    socket.once('connect', () => socket.write(SSL_REQUEST));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed without an answer')));
    socket.once('data', (answer) => {
      resolve(answer[0] === 'S'.charCodeAt(0));
      socket.destroy();
    });
  });
}
