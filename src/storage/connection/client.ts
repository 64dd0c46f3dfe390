import { type LookupFunction, Socket } from 'node:net';
import pg from 'pg';
import { ATTEMPT_TIMEOUT_MS, lookupHost } from '../../core/host-lookup.js';

/** Options of a connection, as `pg` defines them. Only the settings interpret `sslmode`. */
export interface ClientOptions extends Readonly<pg.ClientConfig> {
  /** Whether to connect without TLS if the server has none (`sslmode=prefer`). */
  readonly tlsOptional?: boolean;
  /** Looks up host names. Default: that of the process. */
  readonly lookup?: LookupFunction;
  /** Reads files of options again, before each new connection. Never rejects. */
  readonly readAgain?: () => Promise<Pick<pg.ClientConfig, 'user' | 'ssl'>>;
}

/**
 * The driver's client with support for optional TLS (the driver itself either requires TLS or does not use it), and with more time
 * for each address of a name.
 */
export class DatabaseClient extends pg.Client {
  constructor(config: ClientOptions = {}) {
    const { lookup = lookupHost } = config;
    // Not a copy: the pool makes the password a hidden property.
    super(Object.assign(Object.create(config), { stream: () => openSocket(lookup) }));
    if (config.tlsOptional === true) allowPlain(this.connection as DriverConnection);
  }
}

/** The driver connects it to a port and a host, or to the path of a local socket. */
function openSocket(lookup: LookupFunction): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket);
  const attempts = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS };
  const connectTo = (target: number | string, host: string) =>
    typeof target === 'string' ? connect(target) : connect({ port: target, host, lookup, ...attempts });
  return Object.assign(socket, { connect: connectTo as Socket['connect'] });
}

/** A method that is missing from the driver's types. */
type DriverConnection = pg.Connection & { attachListeners(stream: pg.Connection['stream']): void };

/**
 * Lets a connection log in without TLS if the server answers N (it has none); the driver alone would fail. Bytes after the N may
 * come from an attacker (CVE-2021-23222), so such a response is passed to the driver, which refuses it.
 */
function allowPlain(connection: DriverConnection): void {
  connection.once('connect', () => {
    const { stream } = connection;
    const [handleAnswer] = stream.listeners('data');
    stream.removeAllListeners('data');
    stream.once('data', (answer: Buffer) => {
      if (answer.toString() !== 'N') return handleAnswer?.(answer);
      connection.attachListeners(stream);
      connection.emit('sslconnect'); // makes the driver log in
    });
  });
}
