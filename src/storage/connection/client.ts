import pg from 'pg';

/** Options of a connection, as `pg` defines them. Only the settings interpret `sslmode`. */
export interface ClientOptions extends Readonly<pg.ClientConfig> {
  /** Whether to connect without TLS if the server has none (`sslmode=prefer`). */
  readonly tlsOptional?: boolean;
}

/** The driver's client with support for optional TLS: the driver itself either requires TLS or does not use it. */
export class DatabaseClient extends pg.Client {
  constructor(config: ClientOptions = {}) {
    super(config);
    if (config.tlsOptional === true) allowPlain(this.connection as DriverConnection);
  }
}

/** A method that is missing from the driver's types. */
type DriverConnection = pg.Connection & { attachListeners(stream: pg.Connection['stream']): void };

/**
 * Lets a connection log in without TLS if the server answers N (it has none); the driver alone would fail. Bytes after the N may
 * come from an attacker (CVE-2021-23222), so such an answer is passed to the driver, which refuses it.
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
